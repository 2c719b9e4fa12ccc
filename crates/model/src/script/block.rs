//! The numbers of a message's blocks, given out in the order the model opens them.

/// Which block comes next. Words go on in the block they are in; a seal closes its block, and
/// each tool has its own.
#[derive(Default)]
pub(super) struct Blocks {
    next: u32,
    open: Option<(u32, Open)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Open {
    Text,
    Thinking,
}

impl Blocks {
    pub(super) fn text(&mut self) -> u32 {
        self.go_on(Open::Text)
    }

    pub(super) fn thinking(&mut self, sealed: bool) -> u32 {
        let block = self.go_on(Open::Thinking);
        if sealed {
            self.open = None;
        }
        block
    }

    pub(super) fn tool(&mut self) -> u32 {
        self.open = None;
        self.take()
    }

    fn go_on(&mut self, kind: Open) -> u32 {
        match self.open {
            Some((block, open)) if open == kind => block,
            Some(_) | None => {
                let block = self.take();
                self.open = Some((block, kind));
                block
            }
        }
    }

    fn take(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}
