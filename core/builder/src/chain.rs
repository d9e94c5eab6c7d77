//! Chain methods and their options as tables: a row has the method's name, its atom, and the
//! inputs in the order of their arguments.

/// Methods of [`crate::Builder`], one row each:
///
/// ```text
/// method = "atom" (input, argument "input", argument: type) { body "input" } + Options with ["input": value];
/// ```
///
/// An argument without a type accepts any operand. It has its input's name, unless the row
/// gives another. Bodies are closures that fill a nested builder; `Options` is a struct of
/// [`options`]; `with` has inputs of constant value.
macro_rules! chain {
    (
        $(#[$of:meta])*
        impl Builder;
        $(
            $(#[$docs:meta])*
            $method:ident = $op:literal ($($arg:ident $($key:literal)? $(: $type:ty)?),*)
            $({ $($body:ident $($at:literal)?),+ })?
            $(+ $options:ident)?
            $(with [$($more:literal: $value:expr),+])?;
        )*
    ) => {
        $(#[$of])*
        impl $crate::Builder {
            $(
                $(#[$docs])*
                #[allow(unused_mut, reason = "a row with a body or options changes them")]
                pub fn $method(
                    mut self,
                    $($arg: $crate::chain::type_of!($($type)?),)*
                    $($($body: impl FnOnce($crate::Builder) -> $crate::Builder,)+)?
                    $(options: $options,)?
                ) -> Self {
                    let mut inputs: Vec<(&'static str, $crate::Operand)> = vec![
                        $(($crate::chain::key!($arg $($key)?), $arg.into()),)*
                        $($({
                            let key = $crate::chain::key!($body $($at)?);
                            (key, self.body(key, $body))
                        },)+)?
                        $($(($more, $value.into()),)+)?
                    ];
                    $(inputs.extend($options::inputs(options));)?
                    self.atom($op, inputs)
                }
            )*
        }
    };
}

/// Structs of optional inputs, one row each: the member, and the input if its name differs.
macro_rules! options {
    (
        $(#[$docs:meta])*
        $name:ident {
            $($(#[$of:meta])* $member:ident $($key:literal)?,)*
        }
    ) => {
        $(#[$docs])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            $($(#[$of])* pub $member: $crate::Operand,)*
        }

        impl $name {
            fn inputs(self) -> impl Iterator<Item = (&'static str, $crate::Operand)> {
                [$(($crate::chain::key!($member $($key)?), self.$member),)*].into_iter()
            }
        }
    };
}

/// The input of an argument.
macro_rules! key {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $key:literal) => {
        $key
    };
}

/// The type of an argument.
macro_rules! type_of {
    () => { impl Into<$crate::Operand> };
    ($type:ty) => { $type };
}

pub(crate) use {chain, key, options, type_of};
