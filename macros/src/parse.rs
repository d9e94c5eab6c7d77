//! Parser of the attribute: keys with their literal values.

use crate::findings::Findings;
use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprLit, ExprPath, Ident, Lit, LitStr, Path, Token, Type};

/// The keys of the attribute on a function.
pub(crate) const KEYS: [&str; 7] = [
    "cost",
    "name",
    "docs",
    "timeout_ms",
    "effect",
    "output",
    "crate",
];

/// Message about a missing cost.
const WHAT_A_COST_IS: &str = "an atom needs a cost: the fuel that one execution takes from the \
                              budget of the run that calls it, so that no program works for free\n\
                              help: give a number of at least 0, as in `#[atom(cost = 1)]`; a \
                              step of the language costs about 0.1, a call over a network 5; or \
                              the path of a function that computes it, `fn(&Input) -> f64`";

/// The literal cost.
pub(crate) enum CostValue {
    /// A number of at least 0.
    Units(f64),
    /// A function of the input.
    Function(Path),
}

/// The literal output.
pub(crate) enum OutputValue {
    /// A type that has the schema.
    Type(Box<Type>),
    /// A JSON Schema.
    Text(LitStr),
}

/// The parsed attribute, without its invalid parts.
#[derive(Default)]
pub(crate) struct Attribute {
    pub cost: Option<CostValue>,
    pub name: Option<LitStr>,
    pub docs: Option<LitStr>,
    pub timeout_ms: Option<u64>,
    pub pure_effect: Option<(bool, Span)>,
    pub output: Option<OutputValue>,
    pub krate: Option<Path>,
}

/// Parses the attribute of a function.
pub(crate) fn attribute(tokens: TokenStream, findings: &mut Findings) -> Attribute {
    let mut attribute = Attribute::default();
    let mut seen: Vec<String> = Vec::new();
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            let name = key.to_string();
            if !KEYS.contains(&name.as_str()) {
                findings.at(&key, unknown_key(&name));
                skip_value(input)?;
            } else if seen.contains(&name) {
                findings.at(&key, format!("the key `{name}` is given twice"));
                skip_value(input)?;
            } else if let Err(error) = value(&mut attribute, &key, input, findings) {
                findings.push(error);
                skip_value(input)?;
            }
            seen.push(name);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = Parser::parse2(read, tokens) {
        findings.push(error);
    } else if !seen.iter().any(|name| name == "cost") {
        findings.push(syn::Error::new(Span::call_site(), WHAT_A_COST_IS));
    }
    attribute
}

fn unknown_key(name: &str) -> String {
    let near = match name {
        "price" | "fuel" | "costs" => Some("cost"),
        "timeout" | "timeoutMs" => Some("timeout_ms"),
        "doc" | "description" => Some("docs"),
        "op" | "rename" => Some("name"),
        "effects" | "pure" | "io" => Some("effect"),
        "schema" | "returns" | "result" => Some("output"),
        _ => None,
    };
    let hint = near.map_or(String::new(), |near| {
        format!("\nhelp: did you mean `{near}`?")
    });
    format!(
        "there is no key `{name}`; the keys are {}{hint}",
        listed(&KEYS)
    )
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Skips to after the next comma.
fn skip_value(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

fn value(
    attribute: &mut Attribute,
    key: &Ident,
    input: ParseStream<'_>,
    findings: &mut Findings,
) -> syn::Result<()> {
    if !input.peek(Token![=]) {
        return Err(syn::Error::new(
            key.span(),
            format!("`{key}` needs a value: `{key} = ...`"),
        ));
    }
    input.parse::<Token![=]>()?;
    match key.to_string().as_str() {
        "cost" => attribute.cost = findings.take(cost(&input.parse()?)),
        "name" => attribute.name = Some(text(input, "name", "the `op` that steps name")?),
        "docs" => attribute.docs = Some(text(input, "docs", "what the atom does")?),
        "timeout_ms" => attribute.timeout_ms = findings.take(milliseconds(&input.parse()?)),
        "effect" => attribute.pure_effect = findings.take(effect(&input.parse()?)),
        "output" => attribute.output = Some(output(input)?),
        _ => attribute.krate = Some(krate(input)?),
    }
    Ok(())
}

/// Parses the value of `cost`.
fn cost(expr: &Expr) -> syn::Result<CostValue> {
    let fault = |text: &str| Err(syn::Error::new_spanned(expr, text));
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => match lit {
            Lit::Int(n) => Ok(CostValue::Units(n.base10_parse()?)),
            Lit::Float(n) => match n.base10_parse::<f64>()? {
                n if n.is_finite() => Ok(CostValue::Units(n)),
                _ => fault("a cost must be finite"),
            },
            _ => fault(
                "a cost is a number of at least 0, without quotes, or the path of a function that \
                 computes it, `fn(&Input) -> f64`",
            ),
        },
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Neg(_)) => {
            fault("a cost must not be negative: fuel never rises\nhelp: `cost = 0` makes it free")
        }
        Expr::Path(ExprPath {
            qself: None, path, ..
        }) => Ok(CostValue::Function(path.clone())),
        Expr::Call(_) => fault(
            "a dynamic cost is the path of a function; it is called with the input at every \
             execution\nhelp: leave out the parentheses",
        ),
        _ => fault(
            "a cost is a number of at least 0 or the path of a function, `fn(&Input) -> f64`; \
             compute it in such a function",
        ),
    }
}

fn text(input: ParseStream<'_>, key: &str, meaning: &str) -> syn::Result<LitStr> {
    let expr: Expr = input.parse()?;
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text),
        other => Err(syn::Error::new_spanned(
            &other,
            format!("`{key}` is a text in quotes: {meaning}"),
        )),
    }
}

fn milliseconds(expr: &Expr) -> syn::Result<u64> {
    if let Expr::Lit(ExprLit {
        lit: Lit::Int(n), ..
    }) = expr
        && let Ok(n) = n.base10_parse()
    {
        return Ok(n);
    }
    Err(syn::Error::new_spanned(
        expr,
        "`timeout_ms` is a whole number of milliseconds, at least 0; 0 stands for no limit",
    ))
}

fn effect(expr: &Expr) -> syn::Result<(bool, Span)> {
    if let Expr::Lit(ExprLit {
        lit: Lit::Str(text),
        ..
    }) = expr
    {
        match text.value().as_str() {
            "pure" => return Ok((true, text.span())),
            "io" => return Ok((false, text.span())),
            _ => {}
        }
    }
    Err(syn::Error::new_spanned(
        expr,
        "`effect` is \"pure\", if the answer depends on the parameters only and nothing else \
         changes, or \"io\"",
    ))
}

fn output(input: ParseStream<'_>) -> syn::Result<OutputValue> {
    if !input.peek(Lit) {
        return Ok(OutputValue::Type(input.parse()?));
    }
    let schema = text(
        input,
        "output",
        "a JSON Schema; a type is written without quotes",
    )?;
    let fault = |text: String| Err(syn::Error::new(schema.span(), text));
    match serde_json::from_str::<serde_json::Value>(&schema.value()) {
        Ok(serde_json::Value::Object(_)) => Ok(OutputValue::Text(schema)),
        Ok(_) => fault("a JSON Schema is an object".to_owned()),
        Err(error) => fault(format!("the output's schema is no JSON: {error}")),
    }
}

fn krate(input: ParseStream<'_>) -> syn::Result<Path> {
    // serde expects the path in quotes, so accept that form too.
    let path = match input.peek(LitStr) {
        true => input.parse::<LitStr>()?.parse_with(Path::parse_mod_style),
        false => input.call(Path::parse_mod_style),
    };
    path.map_err(|error| {
        syn::Error::new(
            error.span(),
            "`crate` is the path of the crate that has `typed`, as in `crate = agent99`",
        )
    })
}

/// The keys of the attribute on a parameter.
#[derive(Default)]
pub(crate) struct ParamAttribute {
    pub default: Option<Expr>,
    pub name: Option<LitStr>,
}

/// Parses `#[atom(..)]` on a parameter.
pub(crate) fn param_attribute(
    attribute: &syn::Attribute,
    out: &mut ParamAttribute,
    findings: &mut Findings,
) {
    let read = |input: ParseStream<'_>| {
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            match key.to_string().as_str() {
                "default" => {
                    input.parse::<Token![=]>()?;
                    let value = input.parse()?;
                    if out.default.replace(value).is_some() {
                        findings.at(&key, "the key `default` is given twice");
                    }
                }
                "name" => {
                    input.parse::<Token![=]>()?;
                    let value = text(input, "name", "the key of the step")?;
                    if out.name.replace(value).is_some() {
                        findings.at(&key, "the key `name` is given twice");
                    }
                }
                other => {
                    findings.at(
                        &key,
                        format!(
                            "there is no key `{other}` for a parameter; the keys are `default`, \
                             `name`"
                        ),
                    );
                    skip_value(input)?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(())
    };
    if let Err(error) = attribute.parse_args_with(read) {
        findings.push(error);
    }
}

/// The text of documentation comments, without the space after the slashes.
pub(crate) fn docs(attributes: &[syn::Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .map(|line| {
            line.strip_prefix(' ')
                .unwrap_or(&line)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.join("\n").trim().to_owned()
}

/// Whether an attribute belongs to this macro.
pub(crate) fn is_ours(attribute: &syn::Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "atom")
}

/// The name of the function, as the span for errors about the function itself.
pub(crate) fn name_of(item: &syn::ItemFn) -> impl ToTokens + use<> {
    item.sig.ident.clone()
}
