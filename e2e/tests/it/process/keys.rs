//! The keys of the server: no program of a tool can read them from the server, and no result
//! contains one.

use turnwire_testkit::server::ServerOptions;

use crate::shell_server::ShellServer;

const KEY: &str = "sk-test-5e1f08c2d7ab";

fn with_key(mut options: ServerOptions) -> ServerOptions {
    let key = ("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned());
    options.env.push(key);
    options
}

/// The parent of the guard is the server. Prints `denied` for each way into it that is closed.
const INSPECT: &str = r#"
# The shell is the program, so the parent of its parent is the server.
server=$(awk '{print $4}' /proc/$PPID/stat)
tr '\0' ' ' < /proc/$PPID/cmdline | grep -q __guard && echo guard
tr '\0' ' ' < /proc/$server/cmdline | grep -q ' serve' && echo server
for pid in $PPID $server; do
  for file in environ mem maps fd/0 cwd/.; do
    cat /proc/$pid/$file >/dev/null 2>&1 || echo denied
  done
  python3 -c "
import ctypes, sys
ctypes.CDLL(None).ptrace(16, int(sys.argv[1]), 0, 0) == -1 and print('denied')" $pid
done"#;

// R-17
#[tokio::test]
async fn programs_cannot_inspect_the_server_or_their_guard() {
    for is_unprivileged in [false, true] {
        let server = ShellServer::start(|mut options| {
            options.unprivileged = is_unprivileged;
            with_key(options)
        })
        .await;
        let expected = format!("guard\nserver\n{}", ["denied"; 12].join("\n"));
        assert_eq!(server.run(INSPECT).await, expected);
    }
}

#[tokio::test]
async fn keys_of_the_server_are_removed_from_results() {
    let server = ShellServer::start(with_key).await;
    let (start, end) = KEY.split_at(9);
    for (command, expected) in [
        (format!("echo '<{KEY}>'"), "<***>"),
        // In two pieces.
        (
            format!("printf '<{start}'; sleep 0.3; echo '{end}>'"),
            "<***>",
        ),
        // Over two lines.
        (format!("printf '<{start}\\n{end}>'"), "<***>"),
        (
            format!("python3 -c 'print(\"<\" + \"{start}\" + \"{end}\" + \">\")'"),
            "<***>",
        ),
    ] {
        assert_eq!(server.run(&command).await, expected, "{command}");
    }
    // In an error, at the place where the text is cut.
    let command = format!("printf '%2043s' x; echo '{KEY}'; exit 3");
    let answer = server.run(&command).await;
    assert!(answer.contains("exited with code 3"), "{answer}");
    assert!(!answer.contains(&KEY[..4]), "{answer}");
}
