//! State of a host that its atoms share: one value for each type.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Each value is an `Arc<T>`, so that `T` may be a trait.
type Values = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

/// Values of a host by their types, which atoms ask for by type. Clones are
/// cheap and share the values.
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
pub struct HostState {
    own: Option<Arc<Values>>,
    /// Asked for what is not among one's own.
    outer: Option<Arc<Values>>,
}

impl fmt::Debug for HostState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |values: &Option<Arc<Values>>| values.as_ref().map_or(0, |v| v.len());
        f.debug_struct("HostState")
            .field("own", &count(&self.own))
            .field("outer", &count(&self.outer))
            .finish()
    }
}

impl HostState {
    /// The state with this value, in place of another of the same type. The type
    /// may be a trait: `with::<dyn Billing>(Arc::new(..))`.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> HostState {
        let values = Arc::make_mut(self.own.get_or_insert_default());
        values.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// The state with these values for the types that it has none of.
    #[must_use]
    pub fn over(mut self, outer: &HostState) -> HostState {
        if let (None, Some(_)) = (&self.outer, &outer.own) {
            self.outer = outer.own.clone();
        }
        self
    }

    /// The value of this type.
    #[must_use]
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let layers = [&self.own, &self.outer].into_iter().flatten();
        let found = layers
            .into_iter()
            .find_map(|values| values.get(&TypeId::of::<T>()))?;
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
        assert_eq!(format!("{run:?}"), "HostState { own: 1, outer: 3 }");
    }
}
