//! Validation of the parsed attribute and function.

use crate::findings::Findings;
use crate::model::{Atom, Calling, Cost, Output, Param, Passing};
use crate::names;
use crate::parse::{self, Attribute, CostValue, OutputValue, ParamAttribute};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{FnArg, ItemFn, Lifetime, Pat, PatType, ReturnType, Type, TypeImplTrait, TypeReference};

/// The model of a function; `None` if the function itself is invalid. Invalid parts of the
/// attribute get harmless defaults, so that uses of the generated items cause no further
/// errors.
pub(crate) fn atom(attribute: Attribute, item: &ItemFn, findings: &mut Findings) -> Option<Atom> {
    let rust_name = item.sig.ident.unraw().to_string();
    let op = op_name(&attribute, item, &rust_name, findings);
    let known = findings.count();
    signature(item, findings);
    let (takes_cx, params) = params(item, findings);
    let is_async = item.sig.asyncness.is_some();
    let pure_effect = match attribute.pure_effect {
        Some((true, span)) if is_async => {
            let text = "an `async fn` is not pure: it waits for something that is not among its \
                        parameters\nhelp: leave `effect` out; or, if it never waits, leave `async` \
                        out";
            findings.push(syn::Error::new(span, text));
            false
        }
        Some((pure_effect, _)) => pure_effect,
        None => !is_async && !takes_cx,
    };
    let calling = match (is_async, takes_cx, pure_effect) {
        (true, ..) => Calling::Waiting,
        (false, false, true) => Calling::Inline,
        (false, ..) => Calling::Ready,
    };
    let returns = match &item.sig.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => {
            no_impl_trait(ty, findings);
            Some((**ty).clone())
        }
    };
    let cost = match attribute.cost {
        Some(CostValue::Units(units)) => Cost::Units(units),
        Some(CostValue::Function(path)) => Cost::Function(path),
        None => Cost::Units(0.0),
    };
    if findings.count() > known {
        return None;
    }
    Some(Atom {
        krate: attribute
            .krate
            .map_or_else(|| quote!(::agent99), ToTokens::into_token_stream),
        vis: item.vis.clone(),
        cfgs: item
            .attrs
            .iter()
            .filter(|attribute| attribute.path().is_ident("cfg"))
            .cloned()
            .collect(),
        ident: item.sig.ident.clone(),
        answer_span: returns
            .as_ref()
            .map_or_else(|| item.sig.ident.span(), Spanned::span),
        rust_name,
        op,
        docs: match &attribute.docs {
            Some(docs) => docs.value(),
            None => parse::docs(&item.attrs),
        },
        is_documented: attribute.docs.is_some()
            || item.attrs.iter().any(|a| a.path().is_ident("doc")),
        takes_cx,
        params,
        returns,
        calling,
        pure_effect,
        timeout_ms: attribute.timeout_ms,
        cost,
        output: match attribute.output {
            None => Output::Returned,
            Some(OutputValue::Type(ty)) => Output::Type(ty),
            Some(OutputValue::Text(text)) => Output::Text(text.value()),
        },
    })
}

/// Rejects functions that cannot be atoms.
fn signature(item: &ItemFn, findings: &mut Findings) {
    let sig = &item.sig;
    if let Some(token) = &sig.constness {
        findings.at(
            token,
            "an atom is called at run time: it cannot be a `const fn`",
        );
    }
    if let Some(token) = &sig.unsafety {
        findings.at(
            token,
            "programs that nobody trusts call atoms: an atom cannot be an `unsafe fn`\nhelp: \
             check the inputs in a safe function that calls this one",
        );
    }
    if let Some(abi) = &sig.abi {
        findings.at(abi, "an atom cannot be an `extern fn`");
    }
    if let Some(dots) = &sig.variadic {
        findings.at(dots, "an atom has a fixed number of parameters");
    }
    for param in &sig.generics.params {
        let text = match param {
            syn::GenericParam::Lifetime(_) => {
                "an atom has no lifetime parameters: its inputs live as long as the call; leave \
                 the lifetime out"
            }
            syn::GenericParam::Type(_) => {
                "an atom has no type parameters: programs give JSON, which must become one type"
            }
            syn::GenericParam::Const(_) => "an atom has no const parameters",
        };
        findings.at(param, text);
    }
    if let Some(clause) = &sig.generics.where_clause {
        findings.at(clause, "an atom has no type parameters to bound");
    }
    let name = sig.ident.unraw().to_string();
    if names::constant(&name) == name {
        let text = format!(
            "the constant beside this function would be called `{name}` as well\nhelp: name the \
             function in snake_case"
        );
        findings.at(&sig.ident, text);
    }
    for attribute in item.attrs.iter().filter(|a| parse::is_ours(a)) {
        findings.at(
            attribute,
            "a function is one atom: `#[atom]` is there twice",
        );
    }
}

fn op_name(
    attribute: &Attribute,
    item: &ItemFn,
    rust_name: &str,
    findings: &mut Findings,
) -> String {
    match &attribute.name {
        Some(name) => {
            let op = name.value();
            if let Some(fault) = names::fault(&op) {
                findings.at(name, fault);
            }
            op
        }
        None => {
            let op = names::camel(rust_name);
            if let Some(fault) = names::fault(&op) {
                let text = format!("{fault}\nhelp: name the atom by `name = \"...\"`");
                findings.at(parse::name_of(item), text);
            }
            op
        }
    }
}

/// Whether `cx` comes first, and the parameters that are inputs.
fn params(item: &ItemFn, findings: &mut Findings) -> (bool, Vec<Param>) {
    let mut takes_cx = false;
    let mut params: Vec<Param> = Vec::new();
    for (index, arg) in item.sig.inputs.iter().enumerate() {
        let arg = match arg {
            FnArg::Receiver(receiver) => {
                findings.at(
                    receiver,
                    "an atom is a function, not a method: there is no `self` in a program\nhelp: \
                     state of the host is reached through `cx: &AtomCx`",
                );
                continue;
            }
            FnArg::Typed(arg) => arg,
        };
        match cx(&arg.ty) {
            Some(TakesCx::Borrowed) if index == 0 => {
                takes_cx = true;
                continue;
            }
            Some(TakesCx::Borrowed) => {
                findings.at(&arg.ty, "`&AtomCx` can only be the first parameter");
                continue;
            }
            Some(TakesCx::Otherwise) => {
                let text = "the run is only lent to an atom\nhelp: take it by reference: \
                            `cx: &AtomCx`";
                findings.at(&arg.ty, text);
                continue;
            }
            None => {}
        }
        if let Some(param) = param(arg, findings) {
            if params.iter().any(|other| other.key == param.key) {
                let text = format!("another parameter has the key `{}` already", param.key);
                findings.at(&arg.pat, text);
            }
            params.push(param);
        }
    }
    (takes_cx, params)
}

fn param(arg: &PatType, findings: &mut Findings) -> Option<Param> {
    let mut own = ParamAttribute::default();
    for attribute in arg.attrs.iter().filter(|a| parse::is_ours(a)) {
        parse::param_attribute(attribute, &mut own, findings);
    }
    let passed = passing(&arg.ty, findings);
    let ident = match &*arg.pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => pat.ident.clone(),
        Pat::Wild(_) => {
            findings.at(
                &arg.pat,
                "every parameter needs a name: it is the key of the step",
            );
            return None;
        }
        _ => {
            findings.at(
                &arg.pat,
                "every parameter needs a plain name, not a pattern: it is the key of the step",
            );
            return None;
        }
    };
    let (ty, passing) = passed?;
    let key = match &own.name {
        Some(name) => name.value(),
        None => names::camel(&ident.unraw().to_string()),
    };
    let named: &dyn ToTokens = match &own.name {
        Some(name) => name,
        None => &ident,
    };
    if names::STEP_KEYS.contains(&key.as_str()) {
        let text = format!(
            "`{key}` is one of the step's own keys (`op`, `result`, `resultConst`)\nhelp: rename \
             the parameter, or its key by `#[atom(name = \"...\")]`"
        );
        findings.at(named, text);
    } else if key.is_empty() {
        findings.at(named, "the key of a parameter must not be empty");
    }
    Some(Param {
        ident,
        key,
        ty,
        passing,
        docs: parse::docs(&arg.attrs),
        default: own.default,
    })
}

/// The type in the input struct, and how the value is passed to the function.
fn passing(ty: &Type, findings: &mut Findings) -> Option<(Type, Passing)> {
    match ty {
        Type::Reference(reference) => {
            let is_str = matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("str"));
            if is_str && reference.mutability.is_none() && reference.lifetime.is_none() {
                let owned = syn::parse_quote!(::std::string::String);
                return Some((owned, Passing::Text));
            }
            let text = if is_str && reference.lifetime.is_some() {
                "an input lives as long as the call\nhelp: leave the lifetime out: `&str`"
            } else {
                "an input is owned: of references only `&str` and, first, `cx: &AtomCx` are \
                 known\nhelp: take the value itself"
            };
            findings.at(ty, text);
            None
        }
        _ if is_shared(ty) => {
            let text = "programs give JSON, and no pointers into the host\nhelp: state of the host \
                        is asked for: take `cx: &AtomCx` first, and `cx.host::<T>()` gives what \
                        `RunOptions::host` or `EngineBuilder::host` was given";
            findings.at(ty, text);
            None
        }
        _ => {
            let mut inner = NoBorrows { findings };
            inner.visit_type(ty);
            Some((ty.clone(), Passing::Value))
        }
    }
}

/// Finds types that an input struct cannot have.
struct NoBorrows<'f> {
    findings: &'f mut Findings,
}

impl<'ast> Visit<'ast> for NoBorrows<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        self.findings.at(
            reference,
            "an input is owned: a reference cannot be inside of its type\nhelp: take `String` \
             instead of `&str`, `Vec<T>` instead of `&[T]`",
        );
    }

    fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
        if lifetime.ident != "static" {
            self.findings
                .at(lifetime, "an input is owned: it has no lifetime");
        }
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
        self.findings.at(ty, IMPL_TRAIT);
    }
}

const IMPL_TRAIT: &str = "an atom names its types: JSON must become one type, and its schema is \
                          made of it";

fn no_impl_trait(ty: &Type, findings: &mut Findings) {
    if let Type::ImplTrait(_) = ty {
        findings.at(ty, IMPL_TRAIT);
    }
}

fn last_segment(ty: &Type) -> Option<&syn::Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// How a parameter takes the run's context.
enum TakesCx {
    /// As a shared reference.
    Borrowed,
    /// In an unsupported way.
    Otherwise,
}

fn cx(ty: &Type) -> Option<TakesCx> {
    let named = |ty| last_segment(ty).is_some_and(|ident| ident == "AtomCx");
    match ty {
        Type::Reference(reference) if named(&reference.elem) => {
            Some(match reference.mutability.is_none() {
                true => TakesCx::Borrowed,
                false => TakesCx::Otherwise,
            })
        }
        _ => named(ty).then_some(TakesCx::Otherwise),
    }
}

/// Whether a type is a shared pointer, by its name.
fn is_shared(ty: &Type) -> bool {
    last_segment(ty)
        .is_some_and(|ident| ["Arc", "Rc", "Mutex", "RwLock"].iter().any(|n| ident == n))
}
