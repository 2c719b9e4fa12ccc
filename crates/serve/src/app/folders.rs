//! Removes the folders of deleted sessions: at once, and at the start those of sessions that were
//! deleted just before a crash.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use turnwire_event::SessionId;
use turnwire_log::SessionRecords;
use turnwire_session::{SessionService, WeakSessionService};
use turnwire_tool::runner::ProgramFolders;

/// The time after the grace of programs until no program of a deleted session can write.
const AFTER: Duration = Duration::from_secs(3);
/// Folders checked between two pauses, so that many folders delay no other work.
const PIECE: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

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
