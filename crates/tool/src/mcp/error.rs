//! Why an MCP server cannot be used, for the author of the pack or the operator of the server.
//! These texts are never sent to clients or models.

/// Characters of a message that a server sent.
const SERVER_TEXT_CHARS_MAX: usize = 300;

/// An MCP server of a pack that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MCP server `{server}` cannot be used: {reason}")]
pub struct McpServerError {
    /// The name of the server in the pack.
    pub server: String,
    /// What is wrong and what to do.
    pub reason: String,
}

/// The text of a server on one line, cut to [`SERVER_TEXT_CHARS_MAX`].
pub(crate) fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(SERVER_TEXT_CHARS_MAX).collect()
}
