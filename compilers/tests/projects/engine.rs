//! The real engine's parser.

use watershed_compilers::{SqlError, SqlParser, Tree};
use watershed_drivers::duckdb::Parser;

/// The engine's parser as the compiler asks it.
pub(crate) struct Engine {
    parser: Parser,
    version: String,
}

impl Engine {
    pub(crate) fn new() -> Self {
        Self {
            parser: Parser::new(),
            version: Parser::version(),
        }
    }
}

impl SqlParser for Engine {
    fn version(&self) -> &str {
        &self.version
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        let documents = self
            .parser
            .documents(statements)
            .expect("the engine's parser works");
        documents.into_iter().map(Tree::from_document).collect()
    }
}
