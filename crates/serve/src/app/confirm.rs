//! The operator's confirmation of the time: a small file in the data folder, written by `turnwire
//! retention confirm` and consumed by the server.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use turnwire_event::Timestamp;
use turnwire_session::SessionService;

pub(super) const FILE: &str = "retention-confirm";
/// Interval between two looks for the file.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Bytes of the file that are read: a timestamp has 24.
const BYTES_MAX: u64 = 64;

/// Writes the confirmation that it is `time` now into the data folder `home`. The server consumes it
/// within seconds, or at its next start.
pub fn write_confirmation(home: &Path, time: Timestamp) -> io::Result<()> {
    let (path, draft) = (home.join(FILE), home.join(format!("{FILE}.new")));
    let mut options = File::options();
    let options = options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(&draft)?;
    file.write_all(time.to_string().as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, &path)
}

/// Looks for confirmations while the service exists.
pub(super) fn follow(sessions: &SessionService, home: PathBuf) {
    let service = sessions.downgrade();
    tokio::spawn(async move {
        let mut timer = tokio::time::interval(LOOK_EVERY);
        loop {
            timer.tick().await;
            let Some(sessions) = service.upgrade() else {
                return;
            };
            if let Some(time) = take(&home.join(FILE)) {
                sessions.confirm_time(time);
            }
        }
    });
}

/// Reads and removes a confirmation.
fn take(path: &Path) -> Option<Timestamp> {
    let file = File::open(path).ok()?;
    let mut text = String::new();
    let read = file.take(BYTES_MAX).read_to_string(&mut text);
    // A file that cannot be removed would confirm a later time again.
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, "the confirmation of the time cannot be removed: it is ignored");
        return None;
    }
    let time = read.ok().and_then(|_| text.trim().parse().ok());
    if time.is_none() {
        tracing::warn!("the confirmation of the time is no timestamp: it is ignored");
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confirmation_is_consumed_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let time = Timestamp::from_millis(1_794_775_166_120);
        write_confirmation(dir.path(), time).expect("written");
        assert_eq!(take(&dir.path().join(FILE)), Some(time));
        assert_eq!(take(&dir.path().join(FILE)), None);
        fs::write(dir.path().join(FILE), "tomorrow").expect("written");
        assert_eq!(take(&dir.path().join(FILE)), None);
        assert!(!dir.path().join(FILE).exists());
    }
}
