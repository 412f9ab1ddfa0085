//! Environments as containers of an engine that can be told to fail.
//!
//! The tests have threads, because dropping a sandbox blocks until the engine, which is in the same
//! process here, has answered.

use std::collections::HashMap;
use std::time::Duration;

use formats::owner::Owner;
use sandbox::{
    BindMount, BuildNews, DockerSandbox, Engine, ImageBuild, Needs, RunningEnvironment,
    Sandbox as _, SandboxError, StartRequest, StopKind,
};
use serde_json::json;

use crate::engine::{FakeEngine, Orders};
use crate::stub::{Script, Stub};

/// Orders for containers whose environment is `stub`.
fn good(stub: &Stub) -> Orders {
    Orders {
        image: Some(HashMap::new()),
        prints: "listening on http://0.0.0.0:8080\nserver `mail` is ready\n".to_owned(),
        port: stub.address.port(),
        ..Orders::default()
    }
}

fn sandbox(engine: &FakeEngine) -> DockerSandbox {
    let mut sandbox = DockerSandbox::new(Engine::new(Some(engine.host())), "an-image");
    sandbox.waits.ready = Duration::from_secs(8);
    sandbox
}

fn request(engine: &FakeEngine) -> StartRequest {
    StartRequest::new("task 1", engine.log())
}

async fn start(engine: &FakeEngine) -> Result<RunningEnvironment, SandboxError> {
    sandbox(engine).start(request(engine)).await
}

async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..800 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_is_locked_up_reached_over_loopback_and_removed() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(Orders {
        image: Some(HashMap::from([(
            "archipelago.read-only-root".to_owned(),
            "/tmp /home/x".to_owned(),
        )])),
        ..good(&stub)
    });
    let mut sandbox = sandbox(&engine)
        .with_variable("ENV", "prod")
        .with_mount(BindMount {
            source: "/srv/data".into(),
            target: "/data".to_owned(),
            writable: false,
        });
    sandbox.limits.memory_bytes = Some(64 << 20);
    sandbox.limits.cpus = Some(1.5);
    let running = sandbox.start(request(&engine)).await.unwrap();
    assert_eq!(running.base_url(), stub.url());
    assert!(running.roots().is_none());
    running.check().await.unwrap();
    {
        let orders = engine.orders.lock().unwrap();
        let name = orders.alive.keys().next().unwrap();
        assert!(name.starts_with("archipelago-task-1-"), "{name}");
        let host = &orders.body["HostConfig"];
        for (key, value) in [
            ("CapDrop", json!(["ALL"])),
            ("SecurityOpt", json!(["no-new-privileges"])),
            ("ReadonlyRootfs", json!(true)),
            ("Init", json!(true)),
            ("Memory", json!(67_108_864)),
            ("MemorySwap", json!(67_108_864)),
            ("NanoCpus", json!(1_500_000_000)),
            ("PidsLimit", json!(2048)),
            (
                "PortBindings",
                json!({"8080/tcp": [{"HostIp": "127.0.0.1", "HostPort": "0"}]}),
            ),
            (
                "Tmpfs",
                json!({"/tmp": "exec,mode=1777,uid=10001,gid=10002",
                       "/home/x": "exec,mode=1777,uid=10001,gid=10002"}),
            ),
            (
                "Mounts",
                json!([{"Target": "/data", "Source": "/srv/data", "Type": "bind", "ReadOnly": true}]),
            ),
        ] {
            assert_eq!(host[key], value, "{key}");
        }
        assert_eq!(
            orders.body["Env"],
            json!(["HOST=0.0.0.0", "PORT=8080", "ENV=prod"])
        );
        assert_eq!(
            orders.body["Volumes"],
            json!({"/filesystem": {}, "/.apps_data": {}})
        );
        let labels = &orders.body["Labels"];
        assert_eq!(
            labels["archipelago.owner.pid"],
            std::process::id().to_string()
        );
        assert_eq!(labels["archipelago.trial"], "task 1");
        assert_eq!(orders.network["Internal"], false);
        assert_eq!(
            orders.network["Options"]["com.docker.network.bridge.enable_icc"],
            "false"
        );
    }
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::Terminated);
    assert_eq!(stopped.exit.as_deref(), Some("exit status 0"));
    assert!(stopped.remarks.is_empty(), "{stopped:?}");
    engine.assert_nothing_left();
    let log = std::fs::read_to_string(engine.log()).unwrap();
    assert!(log.ends_with("server `mail` is ready\n"), "{log}");

    drop(sandbox);
    assert!(engine.orders.lock().unwrap().networks.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_needs_counts_where_the_operator_says_nothing() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(good(&stub));
    let mut needs = Needs::default();
    needs.image = Some("of-the-task:2".to_owned());
    needs.variables = vec![("MODE".to_owned(), "strict".to_owned())];
    needs.mounts = vec![BindMount {
        source: "/tasks/1/servers".into(),
        target: "/app/mcp_servers".to_owned(),
        writable: false,
    }];
    needs.resources.memory_bytes = Some(1 << 30);
    needs.resources.cpus = Some(0.5);
    let mut by_task = DockerSandbox::by_task(Engine::new(Some(engine.host())));
    by_task.fixed.memory_bytes = Some(128 << 20);
    let request_of = |needs: &Needs| request(&engine).with_needs(needs.clone());
    let running = by_task.start(request_of(&needs)).await.unwrap();
    {
        let orders = engine.orders.lock().unwrap();
        assert_eq!(orders.body["Image"], "of-the-task:2");
        let env = json!(["HOST=0.0.0.0", "PORT=8080", "MODE=strict"]);
        assert_eq!(orders.body["Env"], env);
        let host = &orders.body["HostConfig"];
        assert_eq!(host["Memory"], 128 << 20);
        assert_eq!(host["NanoCpus"], 500_000_000);
        assert_eq!(host["PidsLimit"], 2048);
        let mounts = json!([{"Target": "/app/mcp_servers", "Source": "/tasks/1/servers",
                             "Type": "bind", "ReadOnly": true}]);
        assert_eq!(host["Mounts"], mounts);
    }
    running.stop().await;

    // An image of the operator wins, and a task without needs gets the default one.
    let of_operator = sandbox(&engine);
    of_operator
        .start(request_of(&needs))
        .await
        .unwrap()
        .stop()
        .await;
    assert_eq!(engine.orders.lock().unwrap().body["Image"], "an-image");
    by_task.start(request(&engine)).await.unwrap().stop().await;
    assert_eq!(
        engine.orders.lock().unwrap().body["Image"],
        sandbox::DEFAULT_IMAGE
    );
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remote_engine_cannot_show_folders_of_this_machine() {
    let mut needs = Needs::default();
    needs.mounts = vec![BindMount {
        source: "/tasks/1/servers".into(),
        target: "/app".to_owned(),
        writable: false,
    }];
    let engine = FakeEngine::start(Orders::default());
    let sandbox = DockerSandbox::by_task(Engine::new(Some("tcp://192.0.2.1:2375".to_owned())));
    let error = sandbox
        .start(request(&engine).with_needs(needs))
        .await
        .unwrap_err();
    assert!(matches!(error, SandboxError::Unsupported(_)), "{error}");
    assert!(
        error.to_string().contains("the engine on `192.0.2.1`"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_image_says_how_to_get_it() {
    let engine = FakeEngine::start(Orders::default());
    let error = start(&engine).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Configuration, "image_missing")
    );
    let told = error.to_string();
    assert!(told.contains("no image `an-image`"), "{told}");
    assert!(told.contains("`archipelago image build`"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_down_is_infrastructure() {
    for host in ["unix:///no/such/socket", "tcp://127.0.0.1:1", "ssh://host"] {
        let sandbox = DockerSandbox::new(Engine::new(Some(host.to_owned())), "an-image");
        let folder = tempfile::tempdir().unwrap();
        let error = sandbox
            .start(StartRequest::new("t", folder.path().join("log")))
            .await
            .unwrap_err();
        assert_eq!(
            (error.owner(), error.kind()),
            (Owner::Infrastructure, "engine_unreachable")
        );
        let told = error.to_string();
        assert!(told.contains(&format!("`{host}`")), "{told}");
        assert!(told.contains("`DOCKER_HOST`"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_is_taken_meanwhile_is_tried_again() {
    let stub = Stub::start(Script::default()).await;
    let taken = (
        500,
        "Bind for 127.0.0.1:1 failed: port is already allocated".to_owned(),
    );
    let engine = FakeEngine::start(Orders {
        starts: vec![taken.clone(), taken.clone()],
        ..good(&stub)
    });
    start(&engine).await.unwrap().stop().await;

    engine.orders.lock().unwrap().starts = vec![taken; 3];
    let error = start(&engine).await.unwrap_err();
    assert_eq!(error.owner(), Owner::Infrastructure);
    assert!(
        error.to_string().contains("could not start the container"),
        "{error}"
    );
    assert!(
        error.to_string().contains("port is already allocated"),
        "{error}"
    );
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_engine_refuses_is_told_in_its_words() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(Orders {
        create: Some((
            500,
            "mkdir /var/lib/docker: no space left on device".to_owned(),
        )),
        ..good(&stub)
    });
    let error = start(&engine).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "engine_refused")
    );
    assert!(
        error.to_string().ends_with("no space left on device"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_ends_at_once_says_why() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(Orders {
        ends: Some((3, false)),
        prints: "reading settings\nroot is missing\n".to_owned(),
        ..good(&stub)
    });
    let error = start(&engine).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the environment did not become ready: the environment ended with exit status 3; its last \
         lines:\n    reading settings\n    root is missing"
    );
    assert_eq!(error.owner(), Owner::Infrastructure);
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_without_memory_is_told_by_the_client_and_by_check() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(good(&stub));
    let mut sandbox = sandbox(&engine);
    sandbox.limits.memory_bytes = Some(64 << 20);
    let running = sandbox.start(request(&engine)).await.unwrap();
    engine.end_all(137, true);
    drop(stub);
    let config = serde_json::from_str(r#"{"mcpServers": {}}"#).unwrap();
    let error = running.client().apps(&config).await.unwrap_err();
    assert_eq!(
        (error.owner(), error.kind()),
        (Owner::Infrastructure, "environment_died")
    );
    let died = running.check().await.unwrap_err();
    assert_eq!(
        died.exit,
        "signal 9 (SIGKILL), out of memory: the limit is 64 MiB"
    );
    assert_eq!(died.last_lines.0.last().unwrap(), "server `mail` is ready");
    let stopped = running.stop().await;
    assert_eq!(stopped.kind, StopKind::AlreadyEnded);
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_does_not_answer_shows_what_it_printed() {
    let stub = Stub::start(Script {
        unhealthy: usize::MAX,
        ..Script::default()
    })
    .await;
    let engine = FakeEngine::start(good(&stub));
    let mut sandbox = sandbox(&engine);
    sandbox.waits.ready = Duration::from_millis(300);
    let error = sandbox.start(request(&engine)).await.unwrap_err();
    assert!(matches!(error, SandboxError::NotHealthy { .. }), "{error}");
    assert!(
        error.to_string().ends_with("    server `mail` is ready"),
        "{error}"
    );
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_is_cancelled_or_dropped_leaves_nothing() {
    let stub = Stub::start(Script {
        unhealthy: usize::MAX,
        ..Script::default()
    })
    .await;
    let engine = FakeEngine::start(good(&stub));
    let cancel = tokio_util::sync::CancellationToken::new();
    let sandbox = sandbox(&engine);
    let cancelled = request(&engine).cancelled_by(cancel.clone());
    let (started, ()) = tokio::join!(sandbox.start(cancelled), async {
        eventually(|| engine.asked("POST /containers/archipelago-task-1") > 0).await;
        cancel.cancel();
    });
    assert_eq!(started.unwrap_err().owner(), Owner::Cancelled);
    engine.assert_nothing_left();

    // Dropped while the engine is busy making it: the engine makes it all the same.
    engine.orders.lock().unwrap().create_hangs = true;
    let made = engine.asked("POST /containers/create");
    let start = sandbox.start(request(&engine));
    tokio::select! {
        _ = start => panic!("it cannot be ready"),
        () = eventually(|| engine.asked("POST /containers/create") > made) => {}
    }
    eventually(|| engine.asked("DELETE /containers/") == 2).await;
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_it_removes_the_container() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(good(&stub));
    let running = start(&engine).await.unwrap();
    drop(running);
    engine.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_container_is_stopped_and_stays() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(good(&stub));
    let mut sandbox = sandbox(&engine);
    sandbox.keep = true;
    let stopped = sandbox.start(request(&engine)).await.unwrap().stop().await;
    assert_eq!(stopped.remarks.len(), 1);
    assert!(
        stopped.remarks[0].contains("is kept: `docker logs"),
        "{stopped:?}"
    );
    assert_eq!(engine.asked("DELETE /containers/"), 0);
    let orders = engine.orders.lock().unwrap();
    assert_eq!(orders.body["Labels"]["archipelago.kept"], "true");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_of_killed_programs_are_swept_and_others_stay() {
    let stub = Stub::start(Script::default()).await;
    let engine = FakeEngine::start(good(&stub));
    // The labels of this program, learnt from a container of its own.
    start(&engine).await.unwrap().stop().await;
    let labels = engine.orders.lock().unwrap().body["Labels"].clone();
    let ours: HashMap<String, String> = serde_json::from_value(labels).unwrap();
    let changed = |changes: &[(&str, &str)]| {
        let mut labels = ours.clone();
        labels.extend(
            changes
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        labels
    };
    // Process 1 lives, and it did not start when this label says.
    let dead = ("archipelago.owner.pid", "1");
    engine.orders.lock().unwrap().there = vec![
        ("orphan".to_owned(), changed(&[dead]), true),
        (
            "kept".to_owned(),
            changed(&[dead, ("archipelago.kept", "true")]),
            true,
        ),
        ("alive".to_owned(), changed(&[]), true),
        (
            "elsewhere".to_owned(),
            changed(&[dead, ("archipelago.owner.boot", "x")]),
            true,
        ),
        (
            "namespace".to_owned(),
            changed(&[dead, ("archipelago.owner.pid-namespace", "x")]),
            true,
        ),
        ("net-orphan".to_owned(), changed(&[dead]), false),
        ("net-alive".to_owned(), changed(&[]), false),
    ];
    start(&engine).await.unwrap().stop().await;
    let left: Vec<String> = {
        let orders = engine.orders.lock().unwrap();
        orders.there.iter().map(|(id, ..)| id.clone()).collect()
    };
    assert_eq!(left[..4], ["kept", "alive", "elsewhere", "namespace"]);
    assert_eq!(engine.asked("POST /containers/kept/stop"), 1);
    assert_eq!(engine.asked("DELETE /networks/net-orphan"), 1);
    assert_eq!(engine.asked("DELETE /networks/net-alive"), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_network_a_remote_engine_is_refused() {
    let mut sandbox = DockerSandbox::new(Engine::new(Some("tcp://builder:2375".into())), "x");
    sandbox.network = false;
    let folder = tempfile::tempdir().unwrap();
    let error = sandbox
        .start(StartRequest::new("t", folder.path().join("log")))
        .await
        .unwrap_err();
    assert_eq!(error.owner(), Owner::Configuration);
    assert!(error.to_string().contains("`builder`"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_is_told_step_by_step_and_fails_with_its_last_lines() {
    let engine = FakeEngine::start(Orders {
        builder: vec![
            json!({"stream": "Step 1/2 : FROM debian"}),
            json!({"stream": "\n"}),
            json!({"stream": " ---> 1234\n"}),
            json!({"stream": "Step 2/2 : RUN make\n"}),
            json!({"stream": "\u{1b}[91mmake: no rule\u{1b}[0m\n"}),
        ],
        ..Orders::default()
    });
    let context = tempfile::tempdir().unwrap();
    std::fs::write(context.path().join("Dockerfile"), "FROM debian").unwrap();
    std::fs::write(context.path().join("secret"), "x").unwrap();
    std::fs::write(context.path().join(".dockerignore"), "secret\nDockerfile\n").unwrap();
    let build = ImageBuild {
        context: context.path().to_owned(),
        dockerfile: "Dockerfile".to_owned(),
        tag: "an-image".to_owned(),
        arguments: HashMap::from([("A".to_owned(), "b".to_owned())]),
        network: Some("host".to_owned()),
    };
    let client = Engine::new(Some(engine.host()));
    let mut news = Vec::new();
    client
        .build_image(&build, |told| news.push(told))
        .await
        .unwrap();
    let step = |number, instruction: &str| BuildNews::Step {
        number,
        total: 2,
        instruction: instruction.to_owned(),
    };
    assert_eq!(
        news,
        [
            step(1, "FROM debian"),
            BuildNews::Line("---> 1234".to_owned()),
            step(2, "RUN make"),
            BuildNews::Line("make: no rule".to_owned()),
        ]
    );
    {
        let mut orders = engine.orders.lock().unwrap();
        assert_eq!(orders.context, [".dockerignore", "Dockerfile"]);
        let asked = orders.asked.last().unwrap();
        for part in ["t=an-image", "networkmode=host", "dockerfile=Dockerfile"] {
            assert!(asked.contains(part), "{asked}");
        }
        let error = "The command returned a non-zero code: 2";
        let failed = json!({"errorDetail": {"code": 2, "message": error}, "error": error});
        orders.builder.push(failed);
    }
    let error = client.build_image(&build, |_| {}).await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("could not build the image `an-image`"),
        "{told}"
    );
    assert!(told.contains("non-zero code: 2"), "{told}");
    assert!(told.ends_with("    make: no rule"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_are_listed_the_newest_first() {
    let engine = FakeEngine::start(Orders::default());
    let images = Engine::new(Some(engine.host())).images().await.unwrap();
    let told: Vec<_> = images
        .iter()
        .map(|image| (image.tags[0].as_str(), image.kind.as_str(), image.bytes))
        .collect();
    assert_eq!(told, [("new:1", "environment", 8), ("old:1", "worlds", 7)]);
}
