//! Numbers the content blocks of a message in the order in which the model opens them. Text and
//! thinking continue the open block of their kind; each tool use has its own.

/// Assigns block numbers. Text continues the open block of its kind; a signature closes its block,
/// and each tool use has its own.
#[derive(Default)]
pub(super) struct BlockNumbers {
    next: u32,
    open: Option<(u32, OpenBlockKind)>,
}

#[derive(Clone, Copy, PartialEq)]
enum OpenBlockKind {
    Text,
    Thinking,
}

impl BlockNumbers {
    pub(super) fn text(&mut self) -> u32 {
        self.continue_or_open(OpenBlockKind::Text)
    }

    pub(super) fn thinking(&mut self, has_signature: bool) -> u32 {
        let block = self.continue_or_open(OpenBlockKind::Thinking);
        if has_signature {
            self.open = None;
        }
        block
    }

    pub(super) fn tool(&mut self) -> u32 {
        self.open = None;
        self.next_number()
    }

    fn continue_or_open(&mut self, kind: OpenBlockKind) -> u32 {
        match self.open {
            Some((block, open)) if open == kind => block,
            Some(_) | None => {
                let block = self.next_number();
                self.open = Some((block, kind));
                block
            }
        }
    }

    fn next_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }
}
