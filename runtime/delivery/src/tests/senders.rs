//! Tests of the HTTP and command notifiers against real receivers and programs.

use std::time::{Duration, Instant};

use watershed_controller::Timestamp;

use super::message;
use super::receiver::{Answer, Receiver};
use crate::message::Message;
use crate::notify::{
    Attempt, Client, Command, DeliveryError, Notifier, Receipt, Secret, Slack, Webhook, sign,
};
use crate::policy::Class;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn to(to: &str) -> Attempt<'_> {
    Attempt {
        number: 1,
        epoch: 1,
        to,
    }
}

fn client() -> Client {
    crate::notify::client(Default::default()).expect("TLS can be configured")
}

async fn post(answer: Answer) -> (Receiver, Result<Receipt, DeliveryError>) {
    let receiver = Receiver::start(vec![answer]).await;
    let secret = Secret::new(SECRET).expect("a secret");
    let webhook = Webhook::new(client(), &receiver.url(), vec![secret]).expect("an address");
    let ended = webhook.deliver(&message("k"), to("")).await;
    (receiver, ended)
}

#[tokio::test]
async fn a_webhook_is_signed_over_what_arrives() {
    let receiver = Receiver::start(vec![Answer::Says("204 No Content", "")]).await;
    let secret = Secret::new(SECRET).expect("a secret");
    let webhook = Webhook::new(client(), &receiver.url(), vec![secret.clone()]).expect("an address");
    let sent = message("k");
    webhook
        .deliver(&sent, to(""))
        .await
        .expect("the receiver takes it");
    let requests = receiver.requests();
    let [request] = requests.as_slice() else {
        panic!("one request is expected: {requests:?}");
    };
    assert_eq!(request.line, "POST /hook?token=hidden HTTP/1.1");
    assert_eq!(request.headers["webhook-id"], sent.key.as_str());
    let seconds: i64 = request.headers["webhook-timestamp"].parse().expect("seconds");
    let expected = sign(&[secret], sent.key.as_str(), seconds, &request.body);
    assert_eq!(request.headers["webhook-signature"], expected);
    let read: Message = serde_json::from_slice(&request.body).expect("a message");
    assert_eq!(read, sent);
}

/// Covers rule N8.
#[tokio::test]
async fn answers_of_a_receiver_say_whether_another_attempt_helps() {
    let cases = [
        (
            "429 Too Many Requests\r\nretry-after: 7",
            Class::Transient,
            Some(7),
        ),
        ("500 Internal Server Error", Class::Transient, None),
        ("410 Gone", Class::Permanent, None),
        ("302 Found\r\nlocation: /elsewhere", Class::Permanent, None),
    ];
    for (head, class, asked) in cases {
        let (receiver, ended) = post(Answer::Says(head, "your token was hidden")).await;
        let error = ended.expect_err(head);
        assert_eq!(error.class, class, "{head}");
        assert_eq!(error.retry_after, asked.map(Duration::from_secs), "{head}");
        assert!(!error.message.contains("hidden"), "{error}");
        assert_eq!(receiver.requests().len(), 1, "nothing is followed");
    }
}

#[tokio::test]
async fn receivers_that_close_or_are_gone_are_tried_again() {
    let (_, ended) = post(Answer::Closes).await;
    let error = ended.expect_err("it closes");
    assert_eq!(error.class, Class::Transient);
    assert!(!error.message.contains("hidden"), "{error}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", listener.local_addr().expect("it is bound"));
    drop(listener);
    let webhook = Webhook::new(client(), &url, Vec::new()).expect("an address");
    let error = webhook
        .deliver(&message("k"), to(""))
        .await
        .expect_err("nobody listens");
    assert_eq!(
        (error.class, error.message.as_str()),
        (Class::Transient, "can't connect")
    );
}

#[tokio::test]
async fn a_receiver_that_hangs_is_left_after_its_time() {
    let began = Instant::now();
    let (_, ended) = post(Answer::Hangs).await;
    let error = ended.expect_err("it hangs");
    assert_eq!(error.class, Class::Transient);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_bot_finds_users_by_address_and_posts_to_channels() {
    let receiver = Receiver::start(vec![
        Answer::Says("200 OK", r#"{"ok": true, "user": {"id": "U1"}}"#),
        Answer::Says("200 OK", r#"{"ok": true, "ts": "12.5"}"#),
        Answer::Says("200 OK", r#"{"ok": false, "error": "channel_not_found"}"#),
    ])
    .await;
    let api = format!("http://127.0.0.1:{}/api/", receiver.port);
    let bot = Slack::bot(client(), "xoxb-hidden", Some(&api)).expect("an address");
    let receipt = bot.deliver(&message("k"), to("ann@example.org")).await;
    assert_eq!(receipt.expect("Slack takes it").said, "12.5");
    let error = bot
        .deliver(&message("k"), to("#nowhere"))
        .await
        .expect_err("no such channel");
    assert_eq!(error.class, Class::Permanent);
    assert!(error.message.contains("channel_not_found"), "{error}");
    let requests = receiver.requests();
    assert_eq!(
        requests[0].line,
        "GET /api/users.lookupByEmail?email=ann%40example.org HTTP/1.1"
    );
    assert!(
        requests
            .iter()
            .all(|request| request.headers["authorization"] == "Bearer xoxb-hidden")
    );
    let posted: serde_json::Value = serde_json::from_slice(&requests[1].body).expect("JSON");
    assert_eq!(posted["channel"], "U1");
    assert_eq!(posted["text"], "late: 3 rows");
}

#[tokio::test]
async fn a_command_reads_the_message_and_its_code_says_whether_another_attempt_helps() {
    let root = tempfile::tempdir().expect("a folder");
    let shell = |script: &str| {
        let arguments = ["sh", "-c", script].map(str::to_owned).to_vec();
        Command::new(root.path(), arguments).within(Duration::from_secs(20))
    };
    let sent = message("k");
    let receipt = shell(r#"cat > "$WATERSHED_KEY""#).deliver(&sent, to("")).await;
    assert_eq!(receipt.expect("it ends well").said, "exit 0");
    let text = std::fs::read(root.path().join(sent.key.as_str())).expect("it was written");
    let read: Message = serde_json::from_slice(&text).expect("a message");
    assert_eq!(read, sent);
    for (script, class, says) in [
        (
            "echo first >&2; echo busy >&2; exit 75",
            Class::Transient,
            "exit 75: busy",
        ),
        ("exit 3", Class::Permanent, "exit 3"),
        ("kill -9 $$", Class::Transient, "signal: 9 (SIGKILL)"),
    ] {
        let error = shell(script).deliver(&sent, to("")).await.expect_err(script);
        assert_eq!((error.class, error.message.as_str()), (class, says), "{script}");
    }
    let error = Command::new(root.path(), vec!["./missing".to_owned()])
        .deliver(&sent, to(""))
        .await
        .expect_err("it is not there");
    assert_eq!(error.class, Class::Permanent);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let root = tempfile::tempdir().expect("a folder");
    let script = "sleep 600 & echo $! > pid; wait";
    let arguments = ["sh", "-c", script].map(str::to_owned).to_vec();
    let slow = Command::new(root.path(), arguments).within(Duration::from_millis(500));
    let error = slow
        .deliver(&message("k"), to(""))
        .await
        .expect_err("it takes too long");
    assert_eq!(error.class, Class::Transient);
    let pid = std::fs::read_to_string(root.path().join("pid")).expect("it began");
    let stat = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + Duration::from_secs(20);
    // A process that was killed may still be listed, as a zombie.
    while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z")) {
        assert!(Instant::now() < deadline, "the program's child goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(crate::message::instant(Timestamp(0)), "1970-01-01T00:00:00Z");
}
