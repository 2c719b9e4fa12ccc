//! The commands of the chat: lines that begin with a slash.

/// The text of `/help`: every command with its effect, one a line.
pub(super) const HELP: &str = "\
/stop     stop the running turn; Ctrl-C does the same
/details  the error codes of the last turn
/help     this list
/quit     leave; Ctrl-D does the same
//text    send a message that begins with a slash
Up and Down bring back earlier lines, Ctrl-R searches them.
";

/// A line that is not a plain message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
    Help,
    Stop,
    Details,
    Quit,
    /// A message that begins with a slash, without the slash that protects it.
    Message(String),
    Unknown(String),
}

impl ChatCommand {
    /// The command in a line; `None` for a plain message.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix('/')?;
        Some(match rest {
            "help" | "?" => Self::Help,
            "stop" => Self::Stop,
            "details" => Self::Details,
            "quit" | "exit" => Self::Quit,
            message if message.starts_with('/') => Self::Message(message.to_owned()),
            _ => {
                let name: String = line.split_whitespace().next().unwrap_or(line).to_owned();
                Self::Unknown(name)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_with_a_slash_are_commands() {
        assert_eq!(ChatCommand::parse("stop"), None);
        assert_eq!(ChatCommand::parse("/stop"), Some(ChatCommand::Stop));
        assert_eq!(ChatCommand::parse("/exit"), Some(ChatCommand::Quit));
        let message = ChatCommand::Message("/etc/hosts?".into());
        assert_eq!(ChatCommand::parse("//etc/hosts?"), Some(message));
        let unknown = ChatCommand::Unknown("/stopp".into());
        assert_eq!(ChatCommand::parse("/stopp it"), Some(unknown));
    }

    #[test]
    fn help_names_every_command() {
        for name in ["/help", "/stop", "/details", "/quit"] {
            assert!(HELP.contains(name), "{name}");
            assert!(!matches!(
                ChatCommand::parse(name),
                Some(ChatCommand::Unknown(_))
            ));
        }
    }
}
