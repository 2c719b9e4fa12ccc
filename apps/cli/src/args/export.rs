//! The arguments of `turnwire export` and `turnwire verify`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use turnwire_event::SessionId;

use super::{ClientArgs, SourceArgs};

/// Write a session into one file.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has the session's rows, its messages, and every stored event byte for byte with its hash;
turnwire verify FILE checks it without a server. It has prompts and answers in it: its mode is 0600.
From a server it has what a client can read; from a data folder also what clients are not shown.

Examples:
  turnwire export sess_01J…                      into sess_01J….jsonl
  turnwire export sess_01J… -o case-42.jsonl --data ~/.turnwire
  turnwire export sess_01J… -o - | gzip > case-42.jsonl.gz")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// The file to write, or - for standard output [default: SESSION.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// Check a session's log or the file of an export.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Id of the session, or a file of turnwire export
    #[arg(value_name = "SESSION|FILE")]
    pub(crate) target: VerifyTarget,
    #[command(flatten)]
    client: ClientArgs,
    /// Read this data folder instead of asking a server
    #[arg(long, value_name = "DIR", visible_alias = "home")]
    data: Option<PathBuf>,
    /// Write JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `turnwire verify` checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VerifyTarget {
    Session(SessionId),
    /// Everything that is no id of a session.
    File(PathBuf),
}

impl FromStr for VerifyTarget {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let session = text.parse().map(Self::Session);
        Ok(session.unwrap_or_else(|_| Self::File(text.into())))
    }
}

impl VerifyArgs {
    /// The source of `session`.
    pub(crate) fn source(self, session: SessionId) -> SourceArgs {
        SourceArgs {
            session,
            client: self.client,
            data: self.data,
            json: self.json,
        }
    }

    /// The flag that names a server or a folder to read, if one is given.
    pub(crate) fn data(&self) -> Option<&PathBuf> {
        self.data.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verify_takes_what_is_no_session_for_a_file() {
        let id = "sess_00000000000000000000000001";
        let target = |text: &str| text.parse::<VerifyTarget>();
        let session = id.parse().map(VerifyTarget::Session);
        assert_eq!(target(id).ok(), session.ok());
        let file = |name: &str| Ok(VerifyTarget::File(name.into()));
        assert_eq!(target("case.jsonl"), file("case.jsonl"));
        assert_eq!(target(&format!("./{id}")), file(&format!("./{id}")));
    }
}
