//! Each program is as hard to end as it says, and none is left.

use std::process::{Command, Stdio};

use super::*;

#[tokio::test]
async fn hostile_programs_resist_as_described() {
    for kind in StubbornKind::ALL {
        let nasty = StubbornPrograms::new();
        assert_eq!(nasty.processes(), [0; 0]);
        let [shell, script] = nasty.command(kind);
        let mut child = Command::new(shell)
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        nasty.until_ready(kind.processes()).await;
        assert!(nasty.processes().len() >= kind.processes(), "{kind:?}");
        let pid = i32::try_from(child.id()).expect("an id");
        let pid = rustix::process::Pid::from_raw(pid).expect("an id");
        let deaf = [
            StubbornKind::IgnoresTerm,
            StubbornKind::EndlessDeaf,
            StubbornKind::Holder,
            StubbornKind::Stopper,
        ];
        let ends = !deaf.contains(&kind);
        if ends {
            // The one that ends by itself may be gone already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            child.wait().expect("it ends");
        } else {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a signal");
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(child.try_wait().expect("a look").is_none(), "{kind:?}");
        }
        let stays = matches!(
            kind,
            StubbornKind::IgnoresTerm
                | StubbornKind::EndlessDeaf
                | StubbornKind::Grandchild
                | StubbornKind::Escapee
                | StubbornKind::Leaver
                | StubbornKind::Headless
                | StubbornKind::Holder
                | StubbornKind::Stopper
        );
        assert_eq!(!nasty.processes().is_empty(), stays, "{kind:?}");
        let mark = nasty.mark().to_owned();
        drop(nasty);
        let until = Instant::now() + Duration::from_secs(20);
        while !processes(&mark).is_empty() {
            assert!(Instant::now() < until, "{kind:?}");
            tokio::time::sleep(POLL).await;
        }
        let _ = child.wait();
    }
}
