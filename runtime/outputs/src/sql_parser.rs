//! Adapter of the engine's parser for the compiler.

use watershed_compilers::{SqlError, SqlParser, Tree};
use watershed_drivers::olap::{Failure, Parser, Vocabulary};

/// The engine's parser. Opens an in-memory engine at the first use, and executes no statement.
#[derive(Debug)]
pub struct EngineParser {
    parser: Box<dyn Parser>,
    version: String,
}

impl Default for EngineParser {
    fn default() -> Self {
        let parser = watershed_drivers::parser();
        Self {
            version: parser.version(),
            parser,
        }
    }
}

impl EngineParser {
    /// Returns the built-in names of an engine without extensions. Blocks for about 20 ms.
    ///
    /// # Errors
    /// How the engine itself failed.
    pub fn vocabulary(&self) -> Result<Vocabulary, Failure> {
        self.parser.vocabulary()
    }
}

impl SqlParser for EngineParser {
    fn version(&self) -> &str {
        &self.version
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        match self.parser.documents(statements) {
            Ok(documents) => documents.into_iter().map(Tree::from_document).collect(),
            Err(failure) => {
                let message = failure.to_string();
                let refusal = SqlError::NotSerialisable { message };
                statements.iter().map(|_| Err(refusal.clone())).collect()
            }
        }
    }
}
