//! Code generation.

use crate::findings::Findings;
use crate::model::{Atom, Calling, Cost, Output, Param, Passing};
use crate::{names, parse, validate};
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, ItemFn};

/// The expansion: the function, and the items that `#[atom]` adds.
pub(crate) fn atom(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let mut findings = Findings::default();
    let attribute = parse::attribute(attribute, &mut findings);
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            findings.push(syn::Error::new(
                error.span(),
                format!("`#[atom]` stands before a function: {error}"),
            ));
            let errors = findings.into_errors();
            return quote!(#item #errors);
        }
    };
    let atom = validate::atom(attribute, &function, &mut findings);
    strip(&mut function);
    let added = atom.as_ref().map(additions);
    let errors = findings.into_errors();
    quote!(#function #added #errors)
}

/// Removes the attributes that only this macro reads.
fn strip(function: &mut ItemFn) {
    function
        .attrs
        .retain(|attribute| !parse::is_ours(attribute));
    for arg in &mut function.sig.inputs {
        if let FnArg::Typed(arg) = arg {
            arg.attrs
                .retain(|a| !parse::is_ours(a) && !a.path().is_ident("doc"));
        }
    }
}

fn additions(atom: &Atom) -> TokenStream {
    let types = input_types(atom);
    let input = input_struct(atom);
    let constant = constant(atom);
    let builder = builder(atom);
    let undocumented = (!atom.is_documented).then(|| undocumented(atom));
    quote!(#types #input #constant #builder #undocumented)
}

/// Checks each parameter's type before the derives, whose errors are less clear.
fn input_types(atom: &Atom) -> TokenStream {
    let Atom { krate, cfgs, .. } = atom;
    let asked = atom.params.iter().map(|param| {
        let ty = &param.ty;
        let span = here(ty.span());
        quote_spanned!(span=> #krate::typed::expansion::input_type::<#ty>();)
    });
    quote! {
        #(#cfgs)*
        const _: () = { #(#asked)* };
    }
}

/// A warning, expressed as the use of a deprecated item, because macros cannot emit warnings.
fn undocumented(atom: &Atom) -> TokenStream {
    let Atom { cfgs, op, .. } = atom;
    let span = here(atom.ident.span());
    let note = format!(
        "models and people choose atoms by what is said of them: write a documentation comment \
         above the function of `{op}`, or `docs = \"...\"`"
    );
    quote_spanned! {span=>
        #(#cfgs)*
        const _: () = {
            #[deprecated(note = #note)]
            const fn atom_without_documentation() {}
            atom_without_documentation()
        };
    }
}

/// The user's span for generated code: lints ignore the code, and errors point to the span.
fn here(span: Span) -> Span {
    Span::call_site().located_at(span)
}

fn input_name(atom: &Atom) -> syn::Ident {
    let pascal = names::pascal(&atom.rust_name);
    format_ident!("{pascal}Input", span = atom.ident.span())
}

fn default_name(param: &Param) -> String {
    use syn::ext::IdentExt;
    format!("__default_{}", param.ident.unraw())
}

/// The input struct, with a field for each parameter.
fn input_struct(atom: &Atom) -> TokenStream {
    let Atom {
        krate, vis, cfgs, ..
    } = atom;
    let name = input_name(atom);
    let doc = format!("The input of [`{}`].", atom.rust_name);
    let fields = atom.params.iter().map(|param| field(atom, param));
    let defaults = atom.params.iter().filter_map(|param| {
        let Param { ty, default, .. } = param;
        let default = default.as_ref()?;
        let function = format_ident!("{}", default_name(param), span = param.ident.span());
        Some(quote! {
            #[doc(hidden)]
            #[allow(clippy::missing_const_for_fn)]
            fn #function() -> #ty { #default }
        })
    });
    let defaults: Vec<TokenStream> = defaults.collect();
    let defaults = (!defaults.is_empty()).then(|| {
        quote! {
            #(#cfgs)*
            impl #name { #(#defaults)* }
        }
    });
    let keys = atom.params.iter().map(|param| {
        let (key, has_default) = (&param.key, param.default.is_some());
        quote!(#krate::typed::Key { name: #key, has_default: #has_default })
    });
    let direct = direct(atom);
    let serde_path = format!("{krate}::typed::expansion::serde").replace(' ', "");
    let schemars_path = format!("{krate}::typed::expansion::schemars").replace(' ', "");
    quote! {
        #(#cfgs)*
        #[doc = #doc]
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            #krate::typed::expansion::serde::Deserialize,
            #krate::typed::expansion::schemars::JsonSchema,
        )]
        #[serde(crate = #serde_path)]
        #[schemars(crate = #schemars_path)]
        #vis struct #name { #(#fields)* }

        #defaults

        #(#cfgs)*
        impl #krate::typed::Input for #name {
            const KEYS: &'static [#krate::typed::Key] = &[#(#keys),*];

            #direct
        }
    }
}

/// The functions that read the input from registers, if all parameter types support it.
fn direct(atom: &Atom) -> TokenStream {
    let x = {
        let krate = &atom.krate;
        quote!(#krate::typed::expansion)
    };
    let takes = |param: &Param| {
        let ty = &param.ty;
        quote!((&#x::Takes::<#ty>::new()).__a99_takes())
    };
    let fits = atom.params.iter().enumerate().map(|(at, param)| {
        let takes = takes(param);
        let default = param
            .default
            .is_some()
            .then(|| quote!(args.is_left_out(#at) ||));
        quote!((#default #takes.fits(args, #at)))
    });
    let fields = atom.params.iter().enumerate().map(|(at, param)| {
        let (ident, takes) = (&param.ident, takes(param));
        match &param.default {
            None => quote!(#ident: #takes.take(args, #at)?),
            Some(_) => {
                let function = format_ident!("{}", default_name(param), span = ident.span());
                quote! {
                    #ident: match args.is_left_out(#at) {
                        true => Self::#function(),
                        false => #takes.take(args, #at)?,
                    }
                }
            }
        }
    });
    quote! {
        #[allow(unused_imports, unused_variables)]
        fn fits(args: &#x::Args<'_>) -> bool {
            use #x::{TakesByValue as _, TakesDirectly as _};
            true #(&& #fits)*
        }

        #[allow(unused_imports, unused_variables)]
        fn take(args: &#x::Args<'_>) -> ::core::option::Option<Self> {
            use #x::{TakesByValue as _, TakesDirectly as _};
            ::core::option::Option::Some(Self { #(#fields),* })
        }
    }
}

fn field(atom: &Atom, param: &Param) -> TokenStream {
    let Param {
        ident,
        key,
        ty,
        docs,
        ..
    } = param;
    let vis = &atom.vis;
    let span = here(ty.span());
    let docs = match docs.is_empty() {
        true => quote_spanned!(span=> #[allow(missing_docs)]),
        false => quote_spanned!(span=> #[doc = #docs]),
    };
    let default = param.default.as_ref().map(|_| {
        let path = format!("{}::{}", input_name(atom), default_name(param));
        quote_spanned!(span=> #[serde(default = #path)])
    });
    quote_spanned! {span=>
        #docs
        #[serde(rename = #key)]
        #default
        #vis #ident: #ty,
    }
}

/// The constant, with its functions.
fn constant(atom: &Atom) -> TokenStream {
    let Atom {
        krate,
        vis,
        cfgs,
        op,
        docs,
        ..
    } = atom;
    let name = format_ident!(
        "{}",
        names::constant(&atom.rust_name),
        span = atom.ident.span()
    );
    let input = input_name(atom);
    let text = format!("[`{}`] as the atom `{op}`.", atom.rust_name);
    let output = output(atom);
    let (code, body) = code(atom);
    let (price, cost) = price(atom);
    let literal = literal(atom);
    let effect = match atom.pure_effect {
        true => quote!(Pure),
        false => quote!(Unsafe),
    };
    let timeout = match atom.timeout_ms {
        Some(0) => quote!(None),
        Some(ms) => quote!(Ms(#ms)),
        None => quote!(Ms(#krate::typed::expansion::DEFAULT_ATOM_TIMEOUT_MS)),
    };
    quote! {
        #(#cfgs)*
        #[doc = #text]
        #vis const #name: #krate::typed::AtomDecl = {
            #output
            static __A99_DECLARED: #krate::typed::Declared =
                #krate::typed::Declared::new(#op, __a99_output);
            #code
            #price
            #literal
            #krate::typed::AtomDecl {
                name: #op,
                docs: #docs,
                keys: <#input as #krate::typed::Input>::KEYS,
                input: #krate::typed::input_schema::<#input>,
                output: __a99_output,
                effect: #krate::typed::expansion::Effect::#effect,
                cost: #cost,
                timeout: #krate::typed::expansion::AtomTimeout::#timeout,
                literal: #krate::typed::expansion::LiteralCheck::new(__a99_literal),
                body: #body,
            }
        };
    }
}

/// The classifier of the function's return type.
fn gives(atom: &Atom) -> TokenStream {
    let x = {
        let krate = &atom.krate;
        quote!(#krate::typed::expansion)
    };
    let span = here(atom.answer_span);
    let ty = match &atom.returns {
        Some(ty) => ty.to_token_stream(),
        None => quote!(()),
    };
    quote_spanned! {span=> {
        #[allow(unused_imports)]
        use #x::{GivesResult as _, GivesValue as _};
        (&#x::Gives::<#ty>::new()).__a99_gives()
    }}
}

/// The function that creates the output's schema.
fn output(atom: &Atom) -> TokenStream {
    let krate = &atom.krate;
    let span = here(atom.answer_span);
    let schema = match &atom.output {
        Output::Text(text) => quote!(#krate::typed::expansion::schema_from_text(#text)),
        Output::Type(ty) => {
            quote_spanned!(span=> #krate::typed::output_schema::<#ty>())
        }
        Output::Returned => {
            let gives = gives(atom);
            quote_spanned!(span=> #gives.schema())
        }
    };
    quote! {
        fn __a99_output() -> #krate::typed::expansion::serde_json::Value { #schema }
    }
}

/// The function that the machine calls, and the body that refers to it.
fn code(atom: &Atom) -> (TokenStream, TokenStream) {
    let krate = &atom.krate;
    let x = quote!(#krate::typed::expansion);
    let input = input_name(atom);
    let ident = &atom.ident;
    let cx = atom.takes_cx.then(|| quote!(&__a99_cx,));
    let args = atom.params.iter().map(|param| {
        let field = &param.ident;
        match param.passing {
            Passing::Value => quote!(__a99_input.#field),
            Passing::Text => quote!(&__a99_input.#field),
        }
    });
    let name = here(ident.span());
    let call = quote_spanned!(name=> #ident(#cx #(#args),*));
    let gives = gives(atom);
    let span = here(atom.answer_span);
    let writes = match atom.output {
        // The declared output derives from the return type, and is not checked if all its
        // values match.
        Output::Returned => quote_spanned!(span=> (&__a99_gives.value_type()).__a99_writes()),
        Output::Type(_) | Output::Text(_) => {
            quote_spanned!(span=> __a99_gives.value_type().checked())
        }
    };
    let answer = quote_spanned! {span=> {
        #[allow(unused_imports)]
        use #x::{FailsWithCode as _, FailsWithText as _, WritesByValue as _, WritesDirectly as _};
        let __a99_gives = #gives;
        let __a99_fails = (&__a99_gives.error_type()).__a99_fails();
        let __a99_writes = #writes;
        __a99_gives.answer(
            __a99_answer,
            |value| __a99_writes.answer(value, __a99_pace),
            |error| __a99_fails.error(error),
        )
    }};
    let awaited = match atom.calling {
        Calling::Inline => {
            let code = quote! {
                fn __a99_call(
                    cx: &mut #x::Cx<'_>,
                    scope: &mut #x::Scope<'_>,
                    args: &[#x::Val],
                ) -> ::core::result::Result<#x::Val, #x::Fault> {
                    #x::inline(cx, scope, args, &__A99_DECLARED, |__a99_input: #input, __a99_pace: &#x::Pace<'_>| {
                        let __a99_answer = #call;
                        #answer
                    })
                }
            };
            return (code, quote!(#krate::typed::Body::Inline(__a99_call)));
        }
        Calling::Ready => call,
        Calling::Waiting => quote_spanned!(name=> #x::sendable(#call).await),
    };
    let code = quote! {
        fn __a99_call(
            call: #x::HostCall,
        ) -> #x::BoxFuture<'static, ::core::result::Result<#x::HostReply, #x::AtomError>> {
            ::std::boxed::Box::pin(async move {
                let __a99_watch = #x::CallWatch::of(&call);
                let (__a99_cx, __a99_input) = #x::begin::<#input>(call, &__A99_DECLARED, &__a99_watch)?;
                let __a99_answer = #awaited;
                #x::finish(&__A99_DECLARED, &__a99_watch, |__a99_pace| #answer)
            })
        }
    };
    (code, quote!(#krate::typed::Body::Call(__a99_call)))
}

/// The function that parses a literal as one of the inputs.
fn literal(atom: &Atom) -> TokenStream {
    let x = {
        let krate = &atom.krate;
        quote!(#krate::typed::expansion)
    };
    let arms = atom.params.iter().enumerate().map(|(index, param)| {
        let (ty, has_default) = (&param.ty, param.default.is_some());
        quote!(#index => #x::literal::<#ty>(value, #has_default),)
    });
    quote! {
        #[allow(unused_variables)]
        fn __a99_literal(
            at: usize,
            value: &#x::Value,
        ) -> ::core::result::Result<(), #x::LiteralFault> {
            match at {
                #(#arms)*
                _ => ::core::result::Result::Ok(()),
            }
        }
    }
}

/// The function that computes a dynamic price, and the price.
fn price(atom: &Atom) -> (TokenStream, TokenStream) {
    let krate = &atom.krate;
    let x = quote!(#krate::typed::expansion);
    let input = input_name(atom);
    match &atom.cost {
        Cost::Units(units) => (
            TokenStream::new(),
            quote!(#krate::typed::Cost::units(#units)),
        ),
        Cost::Function(path) => (
            quote! {
                fn __a99_price(
                    cx: &mut #x::Cx<'_>,
                    args: &[#x::Val],
                    limits: &#x::BoundaryLimits,
                ) -> ::core::result::Result<f64, #x::Fault> {
                    #x::price::<#input>(cx, args, limits, #path)
                }
            },
            quote!(#krate::typed::Cost::Dynamic(__a99_price)),
        ),
    }
}

/// The method of the builder.
fn builder(atom: &Atom) -> TokenStream {
    let Atom {
        krate,
        vis,
        cfgs,
        op,
        ident,
        ..
    } = atom;
    let pascal = names::pascal(&atom.rust_name);
    let name = format_ident!("{pascal}Builder", span = ident.span());
    let x = quote!(#krate::typed::expansion);
    let text = format!("Adds [`{}`] to the fluent builder.", atom.rust_name);
    let docs = match atom.docs.is_empty() {
        true => format!("Adds a step `{op}`."),
        false => atom.docs.clone(),
    };
    let idents: Vec<_> = atom.params.iter().map(|param| &param.ident).collect();
    let keys = atom.params.iter().map(|param| &param.key);
    let args = quote!(#(#idents: impl ::core::convert::Into<#x::Operand>),*);
    quote! {
        #(#cfgs)*
        #[doc = #text]
        #vis trait #name: ::core::marker::Sized {
            #[doc = #docs]
            #[must_use]
            #[allow(clippy::too_many_arguments)]
            fn #ident(self, #args) -> Self;
        }

        #(#cfgs)*
        impl #name for #x::Builder {
            fn #ident(self, #args) -> Self {
                self.atom(
                    #op,
                    ::std::vec![#((#keys, ::core::convert::Into::into(#idents))),*],
                )
            }
        }
    }
}
