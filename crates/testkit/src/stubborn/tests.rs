//! Each program resists termination as described, and no process is left.

use std::process::{Command, Stdio};

use super::*;

#[tokio::test]
async fn hostile_programs_resist_as_described() {
    for kind in StubbornKind::ALL {
        let programs = StubbornPrograms::new();
        assert_eq!(programs.processes(), [0; 0]);
        let [shell, script] = programs.command(kind);
        let mut child = Command::new(shell)
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("it runs");
        programs.until_ready(kind.processes()).await;
        // While a process executes its next program, it has neither a command line nor an
        // environment.
        let until = Instant::now() + Duration::from_secs(20);
        while programs.processes().len() < kind.processes() {
            assert!(Instant::now() < until, "{kind:?}");
            tokio::time::sleep(POLL).await;
        }
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
        assert_eq!(!programs.processes().is_empty(), stays, "{kind:?}");
        let mark = programs.mark().to_owned();
        drop(programs);
        let until = Instant::now() + Duration::from_secs(20);
        while !processes(&mark).is_empty() {
            assert!(Instant::now() < until, "{kind:?}");
            tokio::time::sleep(POLL).await;
        }
        let _ = child.wait();
    }
}
