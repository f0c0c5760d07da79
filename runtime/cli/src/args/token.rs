//! The command line of `token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use clap::builder::PossibleValuesParser;
use watershed_api::http::{ROUTES, Route};

use crate::values::InstanceRole;

/// Returns the names of the operations that a token may be narrowed to, sorted.
fn operations() -> Vec<&'static str> {
    let mut names: Vec<_> = ROUTES.iter().map(Route::name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The arguments of `token`.
#[derive(Debug, Args)]
pub(crate) struct Token {
    /// The thing to do.
    #[command(subcommand)]
    pub action: TokenAction,
}

/// The things to do with tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Make a token, and print its secret this once.
    Create(TokenCreate),
    /// List the tokens that you may revoke.
    List(TokenList),
    /// Revoke a token for good, and end its streams.
    Revoke(TokenRevoke),
}

/// The service to ask.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// Address of the service, with its path prefix. The variable WATERSHED_TOKEN holds the token of the one who asks.
    #[arg(
        long,
        value_name = "URL",
        env = "WATERSHED_URL",
        default_value = "http://127.0.0.1:7437",
        hide_env_values = true,
        value_hint = ValueHint::Url
    )]
    pub url: String,
    /// File of certificates of the authorities to trust besides those of the web.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub ca: Option<PathBuf>,
}

/// The arguments of `token create`.
#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// Name for people, such as "nightly job".
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Role on an instance, such as `shop=operate+query`; `*=read` is for all instances. May be repeated.
    #[arg(long = "role", value_name = "INSTANCE=ROLE", required = true)]
    pub roles: Vec<InstanceRole>,
    /// Allow this operation only; may be repeated.
    #[arg(long = "operation", value_name = "NAME", value_parser = PossibleValuesParser::new(operations()))]
    pub operations: Vec<String>,
    /// Allow these resources only, in the language of `run --select`; may be repeated.
    #[arg(short = 's', long, value_name = "WHAT")]
    pub select: Vec<String>,
    /// Days until the token ends; 90 unless set.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub days: Option<u16>,
    /// Add the token to a file of tokens that a configuration names, without a service.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["url", "ca"])]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub at: At,
}

/// The arguments of `token list`.
#[derive(Debug, Args)]
pub(crate) struct TokenList {
    #[command(flatten)]
    pub at: At,
}

/// The arguments of `token revoke`.
#[derive(Debug, Args)]
pub(crate) struct TokenRevoke {
    /// Id of the token, as `token list` shows it.
    #[arg(value_name = "ID")]
    pub id: String,
    #[command(flatten)]
    pub at: At,
}
