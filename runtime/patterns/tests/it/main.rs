//! The parts in turns of agents, on a host with a store in a file.

mod approval;
#[path = "../../examples/chat.rs"]
mod chat;
mod interrupt;
mod missed;
mod response;
mod support;
mod tools;
mod trackers;

#[tokio::test]
async fn the_chat_example_has_its_conversation() {
    let limit = std::time::Duration::from_secs(60);
    let lines = tokio::time::timeout(limit, chat::run()).await;
    let lines = lines.expect("in time").expect("a conversation");
    chat::check(&lines);
}
