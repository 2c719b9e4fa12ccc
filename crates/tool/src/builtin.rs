//! Tools that run in this process: statuses, feedback, delegation, components, and the tools for
//! trials.

mod renamed;
mod emit_status;
mod feedback;
mod delegate;
mod render;
pub(crate) mod trial;

pub(crate) use delegate::DelegateTool;
pub(crate) use emit_status::EmitStatusTool;
pub(crate) use feedback::FeedbackTool;
pub(crate) use renamed::RenamedTool;
pub(crate) use render::RenderTool;

#[cfg(test)]
mod tests;
