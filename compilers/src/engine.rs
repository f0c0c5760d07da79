//! Parts of an engine that project files may need, and findings where the engine lacks them.

use crate::diagnostics::{At, Code, Findings};

macro_rules! needs {
    ($($need:ident $word:literal $title:literal;)+) => {
        /// A part of an engine that files may ask for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Need {
            $(#[doc = concat!("Asks for ", $title, ".")] $need,)+
        }

        impl Need {
            /// All parts that files may ask for.
            pub const ALL: &[Self] = &[$(Self::$need),+];

            /// Returns the name that engines know the part by.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$need => $word,)+
                }
            }

            const fn title(self) -> &'static str {
                match self {
                    $(Self::$need => $title,)+
                }
            }
        }
    };
}

needs! {
    Builds "builds" "builds of models";
    Partitions "partitions" "stages of partitions";
    Trash "trash" "a trash";
    Migrations "migrations" "migrations";
    Hooks "hooks" "statements around builds";
    Databases "databases" "databases of other systems to read from";
    Elsewhere "elsewhere" "outputs in files and other databases";
}

/// An engine that a project may choose, as far as its files can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// The name of the driver, as connectors write it.
    pub driver: &'static str,
    /// The parts that the engine lacks.
    pub lacks: Vec<Need>,
}

impl Engine {
    /// Creates an engine of a driver; `has` returns true for the names of the parts that it has.
    #[must_use]
    pub fn new(driver: &'static str, has: impl Fn(&str) -> bool) -> Self {
        let lacks = Need::ALL.iter().copied().filter(|need| !has(need.as_str()));
        Self {
            driver,
            lacks: lacks.collect(),
        }
    }

    /// Reports a place that needs a part which the engine lacks. Returns true if it lacks the part.
    pub(crate) fn refuse(&self, need: Need, at: At, findings: &mut Findings) -> bool {
        let lacks = self.lacks.contains(&need);
        if lacks {
            let message = format!(
                "the engine `{}` has no {}",
                self.driver,
                need.title().trim_start_matches("a ")
            );
            let hint = match need {
                Need::Builds => "name another connector, or leave `olap_connector` out".to_owned(),
                _ => "leave it out, or build models in an engine that has it".to_owned(),
            };
            findings.add_with_hint(at, Code::EngineLacks, message, hint);
        }
        lacks
    }
}
