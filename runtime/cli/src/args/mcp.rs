//! The command line of `mcp`.

use clap::Args;
use watershed_callers::Grant;

/// The arguments of `mcp`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Role of the assistant: `read`, `operate` or `edit`; with `+query` also SQL.
    #[arg(long, value_name = "ROLE", default_value = "edit")]
    pub role: Grant,
    /// Ask metrics and APIs as a user: an e-mail of the manifest's `mock_users`, attributes in JSON, or a file of them.
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
}
