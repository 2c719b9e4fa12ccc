//! The data folder: private to the server's user, and without the folders of deleted sessions,
//! which are removed at once, or at the start if a session was deleted just before a crash.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use turnwire_event::SessionId;
use turnwire_log::SessionRecords;
use turnwire_log::private::{self, FILE_MODE, FOLDER_MODE};
use turnwire_log::sqlite::DATABASE_FILE;
use turnwire_session::{SessionService, WeakSessionService};
use turnwire_tool::runner::ProgramFolders;

use super::confirm;

/// The time after the grace of programs until no program of a deleted session can write.
const AFTER: Duration = Duration::from_secs(3);
/// Folders checked between two pauses, so that many folders delay no other work.
const PIECE: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// The files that the server writes into its data folder, besides those of the database.
const FILES: [&str; 3] = ["turnwire.yaml", "reserve", "lock"];
/// The folder of the programs' folders.
const WORK: &str = "work";
/// The endings of the database's files.
const DATABASE_SUFFIXES: [&str; 5] = ["", "-wal", "-shm", "-mark", "-wal.damaged"];
/// Set on folders that several users share, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Creates the data folder, or takes the rights of others away from it and from the server's files
/// in it. Other files are left alone, and so is the mode of a folder that has some and was no data
/// folder before: others may need it. Logs one line if something was changed, and one if something was
/// not.
pub(crate) fn make_private(home: &Path) -> io::Result<()> {
    private::create_folder(home)?;
    let home = &home.canonicalize()?;
    let mut changed = Vec::new();
    let mut refused = Vec::new();
    let is_own = is_data_folder(home)? || has_only_own_files(home)?;
    let database = DATABASE_SUFFIXES.map(|suffix| format!("{DATABASE_FILE}{suffix}"));
    let files = FILES.map(str::to_owned).into_iter().chain(database);
    let files = files.map(|name| (home.join(name), FILE_MODE));
    // The folder first: nobody can reach its files afterwards.
    let folders = [home.to_owned(), home.join(WORK)].map(|path| (path, FOLDER_MODE));
    for (path, mode) in folders.into_iter().chain(files) {
        // The target of a link is somewhere else, and not the server's to change.
        let Ok(meta) = fs::symlink_metadata(&path) else {
            continue;
        };
        let found = meta.permissions().mode() & 0o7777;
        // Nor is something else in the place of a file: the store refuses it.
        let is_expected = match mode {
            FOLDER_MODE => meta.is_dir(),
            _ => meta.is_file(),
        };
        if !is_expected || found & 0o077 == 0 {
            continue;
        }
        let text = format!("{} (was {found:o})", path.display());
        let is_shared = found & STICKY != 0 || (path == *home && !is_own);
        match is_shared || fs::set_permissions(&path, Permissions::from_mode(mode)).is_err() {
            true => refused.push(text),
            false => changed.push(text),
        }
    }
    if !changed.is_empty() {
        let paths = changed.join(", ");
        tracing::warn!(
            paths,
            "others could read the data folder: now only its owner can"
        );
    }
    if !refused.is_empty() {
        let paths = refused.join(", ");
        tracing::warn!(
            paths,
            "others can enter the data folder, and it is left so because it is shared, had other \
             files before the server's, or is another user's; the server's own files are private. \
             Use a folder of its own, or `chmod 700` it"
        );
    }
    Ok(())
}

/// True for a folder of the server's user that has a database of that user.
fn is_data_folder(home: &Path) -> io::Result<bool> {
    let user = rustix::process::geteuid().as_raw();
    let Ok(database) = fs::symlink_metadata(home.join(DATABASE_FILE)) else {
        return Ok(false);
    };
    let owners = [fs::metadata(home)?.uid(), database.uid()];
    Ok(database.is_file() && owners.iter().all(|owner| *owner == user))
}

/// True for a folder that is empty, or has nothing but what the server writes into it.
fn has_only_own_files(home: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(home)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        let is_own = FILES.contains(&&*name)
            || name == WORK
            || name.starts_with(DATABASE_FILE)
            || name.starts_with(confirm::FILE);
        if !is_own {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the folder of every session that is deleted from now on. Its programs have `grace` to
/// end and may write until then, so the folder is removed a second time after that.
pub(crate) fn follow(sessions: &SessionService, folders: ProgramFolders, grace: Duration) {
    let runtime = Handle::current();
    sessions.on_deleted(Arc::new(move |id| {
        let folders = folders.clone();
        runtime.spawn(async move {
            clear(&folders, id).await;
            tokio::time::sleep(grace + AFTER).await;
            clear(&folders, id).await;
        });
    }));
}

async fn clear(folders: &ProgramFolders, id: SessionId) {
    let folders = folders.clone();
    let cleared = tokio::task::spawn_blocking(move || folders.remove(id)).await;
    if let Ok(Err(error)) = cleared {
        // The next start tries again.
        tracing::warn!(session = %id, ?error, "the folder of a deleted session is still there");
    }
}

/// Removes the folders whose sessions are not in `store`, on a thread that ends with `sessions`. A
/// session is in the store before one of its programs has a folder.
pub(crate) fn sweep(
    sessions: &SessionService,
    store: Arc<dyn SessionRecords>,
    folders: ProgramFolders,
) {
    let service = sessions.downgrade();
    let swept = thread::Builder::new()
        .name("folders".to_owned())
        .spawn(move || swept(&service, store.as_ref(), &folders));
    if let Err(error) = swept {
        tracing::warn!(?error, "folders of deleted sessions are not looked for");
    }
}

fn swept(service: &WeakSessionService, store: &dyn SessionRecords, folders: &ProgramFolders) {
    for (at, id) in folders.sessions().enumerate() {
        if at % PIECE == PIECE - 1 {
            thread::sleep(PAUSE);
        }
        if !service.is_alive() {
            return;
        }
        if matches!(store.session(id), Ok(None))
            && let Err(error) = folders.remove(id)
        {
            tracing::warn!(session = %id, ?error, "a folder of no session is still there");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        let meta = fs::metadata(path).expect("a file");
        meta.permissions().mode() & 0o777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("changed");
    }

    /// A file that others may read.
    fn write_open(path: &Path) {
        fs::write(path, "").expect("a file");
        set_mode(path, 0o644);
    }

    #[test]
    fn data_folder_is_made_private_whatever_is_in_it() {
        let root = tempfile::tempdir().expect("a folder");
        let home = root.path().join("home");
        make_private(&home).expect("created");
        assert_eq!(mode(&home), FOLDER_MODE);
        let (database, foreign) = (home.join(DATABASE_FILE), home.join("notes.txt"));
        write_open(&database);
        set_mode(&home, 0o755);
        make_private(&home).expect("mended");
        assert_eq!((mode(&home), mode(&database)), (FOLDER_MODE, FILE_MODE));
        write_open(&foreign);
        set_mode(&home, 0o755);
        make_private(&home).expect("mended again");
        assert_eq!((mode(&home), mode(&foreign)), (FOLDER_MODE, 0o644));
        // A folder such as /tmp is for several users.
        set_mode(&home, 0o1777);
        make_private(&home).expect("left alone");
        assert_eq!(mode(&home), 0o777);
    }

    #[test]
    fn folder_of_other_files_keeps_its_mode() {
        let root = tempfile::tempdir().expect("a folder");
        let (foreign, settings) = (
            root.path().join("notes.txt"),
            root.path().join("turnwire.yaml"),
        );
        for path in [&foreign, &settings] {
            write_open(path);
        }
        set_mode(root.path(), 0o755);
        make_private(root.path()).expect("left alone");
        assert_eq!((mode(root.path()), mode(&foreign)), (0o755, 0o644));
        assert_eq!(mode(&settings), FILE_MODE);
    }
}
