//! Tables of what is known by name, built in or added by a program: methods, data sets.

use std::sync::{PoisonError, RwLock};

/// What a [`Registry`] holds.
pub trait Named {
    /// Its name, which nothing else in the table has.
    fn name(&self) -> &str;
}

/// A table of named things. A program adds its own to the built-in ones before it uses them; from
/// then on they are known in all of the process, wherever a name is read: in arguments,
/// configurations, checkpoints.
pub struct Registry<T: 'static> {
    builtin: &'static [&'static T],
    added: RwLock<Vec<&'static T>>,
}

/// A name that something else has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is the name of another one already; choose another name")]
pub struct NameTaken(pub String);

impl<T: Named> Registry<T> {
    /// A table of built-in things.
    pub const fn new(builtin: &'static [&'static T]) -> Self {
        Registry { builtin, added: RwLock::new(Vec::new()) }
    }

    /// Adds one; a second time changes nothing.
    pub fn add(&self, one: &'static T) -> Result<(), NameTaken> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        match self.builtin.iter().chain(added.iter()).find(|known| known.name() == one.name()) {
            Some(known) if std::ptr::eq(*known, one) => Ok(()),
            Some(_) => Err(NameTaken(one.name().into())),
            None => {
                added.push(one);
                Ok(())
            }
        }
    }

    /// All of them, the built-in ones first.
    pub fn all(&self) -> Vec<&'static T> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        self.builtin.iter().chain(added.iter()).copied().collect()
    }

    /// The one of a name.
    pub fn find(&self, name: &str) -> Option<&'static T> {
        self.all().into_iter().find(|one| one.name() == name)
    }

    /// The names of all, with commas between them.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.all().into_iter().map(T::name).collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Named for String {
        fn name(&self) -> &str {
            self
        }
    }

    #[test]
    fn a_name_is_one_things() {
        fn leak(name: &str) -> &'static String {
            Box::leak(Box::new(name.to_string()))
        }
        let (a, b) = (leak("a"), leak("b"));
        let table = Registry::new(Box::leak(Box::new([a])));
        assert_eq!(table.add(b), Ok(()));
        assert_eq!(table.add(b), Ok(()), "it is the same");
        for other in ["a", "b"] {
            assert_eq!(table.add(leak(other)), Err(NameTaken(other.into())));
        }
        assert_eq!((table.names().as_str(), table.all().len()), ("a, b", 2));
        assert!(std::ptr::eq(table.find("b").unwrap(), b) && table.find("c").is_none());
    }
}
