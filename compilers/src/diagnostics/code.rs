//! The stable codes of findings.

use super::Severity;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $severity:ident $code:literal),+ $(,)?) => {
        /// What a finding is. Codes are stable: scripts may lean on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The code as documents write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)+
                }
            }

            /// How bad a finding of this code is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$variant => Severity::$severity,)+
                }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Code::$variant => concat!($($doc),+),)+
                }
            }
        }
    };
}

codes! {
    /// The project has no manifest: neither `rill.yaml` nor `watershed.yaml` stands at its root.
    ManifestMissing = Error "manifest-missing",
    /// The project has two manifests.
    ManifestTwice = Error "manifest-twice",
}
