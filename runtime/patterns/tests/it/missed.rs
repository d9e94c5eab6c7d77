//! Missed context: what an agent that answers only some messages gets for its prompt.

use crate::support::{
    Files, Script, builder, closed, host, kept, lines, say, sent_by, settle, text,
};
use a99_runtime_patterns::MAX_CHARS;

/// Answers messages that begin with `ask` with what it missed before.
fn asked() -> Script {
    Script::new(|turn, event| {
        Box::pin(async move {
            if !text(&event).is_some_and(|words| words.starts_with("ask")) {
                return Ok(());
            }
            let (client, seq) = (turn.client(), event.seq.unwrap_or_default());
            let most = match text(&event) {
                Some("ask briefly") => 80,
                _ => MAX_CHARS,
            };
            let mut missed = turn.state().missed.clone();
            missed.rebuild(&client, seq - 1, most).await?;
            assert_eq!(missed.has_pending(), missed.get().is_some());
            let elided = missed.elided();
            let said = missed.consume().unwrap_or_else(|| "nothing".to_owned());
            assert!(!missed.has_pending());
            // The question was read, too.
            missed.rebuild(&client, seq, most).await?;
            drop(missed.consume());
            turn.state_mut().missed = missed;
            turn.send(format!("{elided}|{said}")).await.map(drop)
        })
    })
}

#[tokio::test]
async fn each_event_is_missed_once_across_restarts() {
    let files = Files::new();
    let running = host(&files, builder(), &asked()).await;
    for words in ["one", "two", "ask", "ask", "three"] {
        settle(&running, "ann", words).await;
    }
    let consumed = kept(&running).await.missed.consumed();
    closed(running).await;
    let running = host(&files, builder(), &asked()).await;
    settle(&running, "bob", "four").await;
    settle(&running, "ann", "ask").await;
    let shown = lines(&sent_by(&running, "bot").await);
    let missed = |at: usize| {
        let (elided, text) = shown[at].split_once('|').expect("a count");
        assert_eq!(elided, "text 0");
        let said = text.lines().map(|line| match line.split_once(": ") {
            Some((head, said)) => {
                format!("{}{said}", if head.contains("@bob") { "bob " } else { "" })
            }
            None => line.to_owned(),
        });
        said.collect::<Vec<_>>().join(",")
    };
    assert_eq!(missed(0), "one,two");
    // Neither the answer, which is its own, nor the question.
    assert_eq!(missed(1), "nothing");
    assert_eq!(missed(2), "three,bob four");
    assert!(kept(&running).await.missed.consumed() > consumed);
}

#[tokio::test]
async fn format_missed_context() {
    let files = Files::new();
    let script = Script::new(|turn, event| {
        Box::pin(async move {
            let client = turn.client();
            if text(&event) == Some("first") {
                // While it runs two more are said.
                let mut events = client.subscribe(event.seq).await?;
                for _ in 0..2 {
                    events.next().await?;
                }
                let all = a99_runtime_patterns::format_missed_context(&client, MAX_CHARS).await?;
                let brief = a99_runtime_patterns::format_missed_context(&client, 44).await?;
                assert_eq!((all.count, all.elided), (2, 0));
                assert_eq!((brief.count, brief.elided), (2, 1));
                assert_eq!(all.last_seq, event.seq.map(|seq| seq + 2));
                turn.send(all.text).await?;
            }
            Ok(())
        })
    });
    let host = host(&files, builder(), &script).await;
    say(&host, "ann", "first").await;
    say(&host, "ann", "second").await;
    settle(&host, "bob", "third").await;
    let shown = lines(&sent_by(&host, "bot").await);
    assert!(
        shown[0].contains("second") && shown[0].contains("third"),
        "{shown:?}"
    );
}

#[tokio::test]
async fn many_events_are_elided_from_the_oldest() {
    let files = Files::new();
    let host = host(&files, builder(), &asked()).await;
    for n in 0..9 {
        settle(&host, "ann", &format!("word {n}")).await;
    }
    settle(&host, "ann", "ask briefly").await;
    let shown = lines(&sent_by(&host, "bot").await);
    let (elided, text) = shown[0].split_once('|').expect("a count");
    assert_eq!(elided, "text 7");
    assert!(text.chars().count() <= 80, "{text}");
    assert!(
        text.starts_with("(7 earlier entries are left out)\n"),
        "{text}"
    );
    assert!(
        text.ends_with("word 7\n- **@ann** (10): word 8\n"),
        "{text}"
    );
}
