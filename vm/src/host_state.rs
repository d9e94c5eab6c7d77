//! Host state that atoms share: one value per type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Capabilities that the host grants to a run, for atoms that know their type.
pub type Grants = Option<Arc<dyn Any + Send + Sync>>;

/// Each value is an `Arc<T>`, so that `T` may be a trait object.
type Values = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Values of a host, keyed by type, which atoms look up. Clones are cheap and share the
/// values.
///
/// ```
/// use a99_vm::HostState;
/// use std::sync::Arc;
///
/// struct Prices(Vec<f64>);
///
/// let state = HostState::default().with(Arc::new(Prices(vec![1.5])));
/// assert_eq!(state.get::<Prices>().map(|prices| prices.0[0]), Some(1.5));
/// assert!(state.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct HostState(Option<Arc<Layer>>);

/// One layer of values. The handle is a single pointer, because runs pass it through every
/// call and mostly have no values.
#[derive(Clone)]
struct Layer {
    values: Values,
    /// The layer to search if the type is missing here.
    outer: HostState,
}

impl fmt::Debug for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = std::iter::successors(self.0.as_deref(), |layer| layer.outer.0.as_deref());
        f.write_str("HostState ")?;
        f.debug_list()
            .entries(counts.map(|layer| layer.values.len()))
            .finish()
    }
}

impl HostState {
    /// Adds a value, replacing one of the same type. The type may be a trait:
    /// `with::<dyn Billing>(Arc::new(..))`.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> HostState {
        let empty = || {
            Arc::new(Layer {
                values: Values::new(),
                outer: HostState(None),
            })
        };
        let layer = Arc::make_mut(self.0.get_or_insert_with(empty));
        layer.values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Adds the values of `outer` for types that are missing here. State that already has an
    /// outer layer is unchanged.
    #[must_use]
    pub fn over(mut self, outer: &HostState) -> HostState {
        match &mut self.0 {
            None => return outer.clone(),
            Some(layer) if layer.outer.0.is_none() && outer.0.is_some() => {
                Arc::make_mut(layer).outer = outer.clone();
            }
            Some(_) => {}
        }
        self
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let mut layers = std::iter::successors(self.0.as_deref(), |l| l.outer.0.as_deref());
        let found = layers.find_map(|layer| layer.values.get(&TypeId::of::<T>()))?;
        found.downcast_ref::<Arc<T>>().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Says: Send + Sync {
        fn word(&self) -> &'static str;
    }

    struct Hi;

    impl Says for Hi {
        fn word(&self) -> &'static str {
            "hi"
        }
    }

    #[test]
    fn the_run_comes_before_the_engine() {
        let engine = HostState::default()
            .with(Arc::new(1_u8))
            .with(Arc::new("engine"))
            .with::<dyn Says>(Arc::new(Hi));
        let run = HostState::default().with(Arc::new(2_u8)).over(&engine);
        assert_eq!(run.get::<u8>().as_deref(), Some(&2));
        assert_eq!(run.get::<&str>().as_deref(), Some(&"engine"));
        assert_eq!(run.get::<dyn Says>().map(|says| says.word()), Some("hi"));
        assert!(run.get::<Hi>().is_none());
        let changed = engine.clone().with(Arc::new(3_u8));
        assert_eq!(changed.get::<u8>().as_deref(), Some(&3));
        assert_eq!(engine.get::<u8>().as_deref(), Some(&1));
        assert_eq!(format!("{run:?}"), "HostState [1, 3]");
    }
}
