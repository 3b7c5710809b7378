//! Who is asked when.

use proptest::prelude::*;

use super::*;
use crate::core::ids::ObjectKey;

fn pod(node: usize, pod: usize) -> PodRef {
    let name = format!("pod-{node:03}-{pod:03}");
    PodRef { key: ObjectKey::new("default", name.as_str()), uid: name.as_str().into() }
}

fn claim(node: usize) -> Emptied {
    Emptied::Claim(format!("node-{node:03}").into())
}

fn seconds(seconds: u64) -> Moment {
    Duration::from_secs(seconds)
}

/// Nodes with so many pods each, all of them named now.
fn queue(nodes: &[usize], now: Moment) -> Queue {
    let mut queue = Queue::default();
    name_all(&mut queue, nodes, now);
    queue
}

fn name_all(queue: &mut Queue, nodes: &[usize], now: Moment) {
    for (node, pods) in nodes.iter().enumerate() {
        (0..*pods).for_each(|number| queue.name(&claim(node), pod(node, number), false, now));
    }
}

/// Those who are asked now, all politely.
fn asked(queue: &mut Queue, now: Moment) -> Vec<PodRef> {
    std::iter::from_fn(|| queue.next(now, |_, _| Some(Way::Evict))).map(|(pod, _)| pod).collect()
}

fn by_budget(name: &str) -> Refusal {
    Refusal { answer: format!("{name} forbids it"), budget: Some(name.into()), wait: None }
}

fn trouble() -> Refusal {
    Refusal { answer: "no answer".to_owned(), budget: None, wait: None }
}

proptest! {
    #[test]
    fn nodes_take_turns_whatever_their_size(nodes in prop::collection::vec(1_usize..60, 1..40)) {
        let mut queue = queue(&nodes, seconds(0));
        let (mut turns, mut under_way) = (vec![0; nodes.len()], VecDeque::new());
        let all: usize = nodes.iter().sum();
        for _ in 0..all {
            while let Some((pod, way)) = queue.next(seconds(0), |_, _| Some(Way::Evict)) {
                under_way.push_back((pod, way));
            }
            prop_assert!(under_way.len() <= AT_ONCE);
            let (pod, way) = under_way.pop_front().expect("not all have been asked");
            let node = (0..nodes.len()).find(|node| pod.key.name.starts_with(&format!("pod-{node:03}-"))).expect("it has a node");
            turns[node] += 1;
            // Of those that still have somebody to ask, none is more than a turn ahead of another.
            let most = turns.iter().max().copied().unwrap_or_default();
            for (node, turns) in turns.iter().enumerate() {
                prop_assert!(*turns + 1 >= most || *turns == nodes[node], "node {node} had {turns} turns, another {most}");
            }
            prop_assert!(queue.granted(&pod.uid, way, seconds(0)));
        }
        prop_assert_eq!(turns, nodes);
        prop_assert!(asked(&mut queue, seconds(0)).is_empty());
    }

    #[test]
    fn a_node_whose_pods_all_stay_holds_nobody_up(blocked in 1_usize..200, free in 1_usize..60) {
        let mut queue = queue(&[blocked, free], seconds(0));
        let mut left = free;
        for _ in 0..2 * free.div_ceil(AT_ONCE / 2) + 2 {
            for pod in asked(&mut queue, seconds(0)) {
                if pod.key.name.starts_with("pod-000-") {
                    queue.refused(&pod.uid, Way::Evict, by_budget("web"), seconds(0));
                } else {
                    queue.granted(&pod.uid, Way::Evict, seconds(0));
                    left -= 1;
                }
            }
        }
        prop_assert_eq!(left, 0);
    }
}

#[test]
fn few_are_under_way_at_a_time() {
    let mut queue = queue(&[30; 1000], seconds(0));
    let first = asked(&mut queue, seconds(0));
    assert_eq!(first.len(), AT_ONCE);
    assert!(asked(&mut queue, seconds(60)).is_empty());
    queue.granted(&first[0].uid, Way::Evict, seconds(60));
    assert_eq!(asked(&mut queue, seconds(60)), [pod(AT_ONCE, 0)]);
    // One who is gone, and one who stays, make room like one who goes.
    queue.gone(&first[1].uid, seconds(60));
    queue.refused(&first[2].uid, Way::Evict, trouble(), seconds(60));
    assert_eq!(asked(&mut queue, seconds(60)), [pod(AT_ONCE + 1, 0), pod(AT_ONCE + 2, 0)]);
}

#[test]
fn who_was_granted_to_leave_is_not_asked_again_for_two_minutes() {
    let mut queue = queue(&[1], seconds(0));
    let uid = pod(0, 0).uid;
    assert_eq!(asked(&mut queue, seconds(0)), [pod(0, 0)]);
    assert!(queue.granted(&uid, Way::Evict, seconds(0)));
    for now in (5..120).step_by(5).map(seconds) {
        name_all(&mut queue, &[1], now);
        queue.sweep(now, |_| true);
        assert!(asked(&mut queue, now).is_empty(), "{now:?}");
    }
    assert_eq!(queue.wake(), Some(seconds(120)));
    assert_eq!(asked(&mut queue, seconds(120)), [pod(0, 0)]);
    assert!(!queue.granted(&uid, Way::Evict, seconds(120)), "it counts once");
    // It is remembered until it has left, though nobody names it.
    queue.sweep(seconds(1000), |_| true);
    assert_eq!(queue.len(), 1);
    queue.sweep(seconds(1000), |_| false);
    assert!(queue.is_empty() && queue.wake().is_none());
}

#[test]
fn who_refuses_is_asked_again_after_one_two_four_eight_ten_seconds() {
    let mut queue = queue(&[1], seconds(0));
    let (uid, mut now, mut waits) = (pod(0, 0).uid, seconds(0), vec![]);
    for _ in 0..6 {
        assert_eq!(asked(&mut queue, now).len(), 1);
        queue.refused(&uid, Way::Evict, trouble(), now);
        name_all(&mut queue, &[1], now);
        assert!(asked(&mut queue, now).is_empty(), "being named again is no reason to ask");
        let again = queue.wake().unwrap();
        waits.push(again.saturating_sub(now).as_secs());
        now = again;
    }
    assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
    // What the API server says goes, within bounds.
    for (said, wait) in [(5, 5), (0, 1), (300, 10)] {
        assert_eq!(asked(&mut queue, now).len(), 1);
        queue.refused(&uid, Way::Evict, Refusal { wait: Some(seconds(said)), ..trouble() }, now);
        assert_eq!(queue.wake(), Some(now + seconds(wait)));
        now += seconds(wait);
    }
}

#[test]
fn who_may_not_be_asked_now_is_asked_when_it_is_named_again() {
    let mut queue = queue(&[2], seconds(0));
    asked(&mut queue, seconds(0));
    for number in 0..2 {
        queue.refused(&pod(0, number).uid, Way::Evict, by_budget("web"), seconds(0));
    }
    assert_eq!(queue.blocked().values().map(|blocked| blocked.pods).sum::<usize>(), 2);
    // Somebody protects the first of them.
    let protected = pod(0, 0).uid;
    let way = |_: &Emptied, uid: &PodUid| (*uid != protected).then_some(Way::Evict);
    assert_eq!(queue.next(seconds(1), way), Some((pod(0, 1), Way::Evict)));
    assert_eq!(queue.next(seconds(60), way), None);
    assert_eq!(queue.blocked().values().map(|blocked| blocked.pods).sum::<usize>(), 1, "no budget keeps it any more");
    queue.name(&claim(0), pod(0, 0), false, seconds(60));
    assert_eq!(asked(&mut queue, seconds(60)), [pod(0, 0)]);
}

#[test]
fn nobody_leaves_a_node_without_a_nodeclaim_once_its_drain_is_called_off() {
    let orphan = |deadline: i64| Emptied::Node("node".into(), Timestamp::from_second(deadline).unwrap());
    let mut queue = Queue::default();
    queue.name(&orphan(600), pod(0, 0), false, seconds(0));
    assert_eq!(asked(&mut queue, seconds(0)).len(), 1);
    queue.refused(&pod(0, 0).uid, Way::Evict, by_budget("web"), seconds(1));
    queue.name(&orphan(600), pod(0, 0), false, seconds(10));
    assert_eq!(asked(&mut queue, seconds(10)).len(), 1, "it is named still");
    queue.refused(&pod(0, 0).uid, Way::Evict, by_budget("web"), seconds(11));
    // A deadline that was moved counts from the next question on.
    queue.name(&orphan(900), pod(0, 0), false, seconds(12));
    let from = std::cell::RefCell::new(None);
    let way = |leaving: &Emptied, _: &PodUid| {
        *from.borrow_mut() = Some(leaving.clone());
        Some(Way::Evict)
    };
    assert!(queue.next(seconds(30), way).is_some());
    assert_eq!(from.take(), Some(orphan(900)));
    queue.refused(&pod(0, 0).uid, Way::Evict, by_budget("web"), seconds(31));
    assert_eq!(asked(&mut queue, seconds(60)), [], "nobody names it any more");
    queue.name(&orphan(900), pod(0, 0), false, seconds(61));
    assert_eq!(asked(&mut queue, seconds(61)).len(), 1, "it is named again");
}

#[test]
fn who_is_named_no_more_is_forgotten() {
    let mut queue = queue(&[40], seconds(0));
    let under_way = asked(&mut queue, seconds(0));
    queue.refused(&under_way[0].uid, Way::Evict, by_budget("web"), seconds(0));
    queue.sweep(seconds(30), |_| true);
    assert_eq!(queue.len(), 40);
    queue.sweep(seconds(31), |_| true);
    // Who is just being asked is heard out.
    assert_eq!(queue.len(), AT_ONCE - 1);
    assert!(queue.wake().is_none() && queue.blocked().is_empty());
    for pod in &under_way[1..] {
        queue.refused(&pod.uid, Way::Evict, trouble(), seconds(31));
    }
    queue.sweep(seconds(31), |_| true);
    assert!(queue.is_empty() && asked(&mut queue, seconds(100)).is_empty());
}

#[test]
fn a_deadline_comes_before_whatever_was_asked_politely() {
    let mut queue = queue(&[3], seconds(0));
    asked(&mut queue, seconds(0));
    queue.granted(&pod(0, 0).uid, Way::Evict, seconds(0));
    queue.refused(&pod(0, 1).uid, Way::Evict, by_budget("web"), seconds(0));
    (3..6).for_each(|number| queue.name(&claim(0), pod(0, number), false, seconds(0)));
    (0..3).for_each(|number| queue.name(&claim(0), pod(0, number), true, seconds(0)));
    assert!(queue.blocked().is_empty(), "no budget keeps it any more");
    // Whose answer is awaited is deleted when it has come, whatever it is.
    let delete = |_: &Emptied, _: &PodUid| Some(Way::Delete(7));
    let order = |queue: &mut Queue| std::iter::from_fn(|| queue.next(seconds(0), delete)).collect::<Vec<_>>();
    let all = order(&mut queue);
    assert_eq!(all[..2], [(pod(0, 1), Way::Delete(7)), (pod(0, 0), Way::Delete(7))]);
    assert_eq!(all.len(), 5);
    queue.granted(&pod(0, 2).uid, Way::Evict, seconds(0));
    assert_eq!(order(&mut queue), [(pod(0, 2), Way::Delete(7))]);
    // A deletion that was granted counts the pod once, and is not asked for again at each naming.
    assert!(!queue.granted(&pod(0, 2).uid, Way::Delete(7), seconds(0)));
    queue.name(&claim(0), pod(0, 2), true, seconds(10));
    assert!(order(&mut queue).is_empty());
}

#[test]
fn what_budgets_keep_is_told_by_budget_and_since_when() {
    let mut queue = queue(&[3], seconds(0));
    asked(&mut queue, seconds(0));
    let refuse = |queue: &mut Queue, number: usize, refusal: Refusal, now: Moment| {
        queue.refused(&pod(0, number).uid, Way::Evict, refusal, now).expect("it was asked")
    };
    let (first, news) = refuse(&mut queue, 0, by_budget("web"), seconds(3));
    assert_eq!((first.since, news), (seconds(3), true));
    refuse(&mut queue, 1, by_budget("web"), seconds(4));
    refuse(&mut queue, 2, trouble(), seconds(5));
    let blocked = |queue: &Queue| {
        let blocked = queue.blocked().into_iter();
        blocked.map(|((_, budget), it)| (budget.to_string(), it.pods, it.since.as_secs())).collect::<Vec<_>>()
    };
    assert_eq!(blocked(&queue), [("web".to_owned(), 2, 3)]);
    // The same again is no news. In between the API server is in trouble, and another budget comes: it has been kept all along.
    asked(&mut queue, seconds(20));
    assert_eq!(refuse(&mut queue, 0, by_budget("web"), seconds(20)), (first, false));
    let (kept, news) = refuse(&mut queue, 1, trouble(), seconds(20));
    assert_eq!((kept.since, kept.budget.as_deref(), news), (seconds(4), Some("web"), true));
    // The trouble of the third was not a budget: it is kept from now on.
    assert_eq!(refuse(&mut queue, 2, by_budget("other"), seconds(20)).0.since, seconds(20));
    assert_eq!(blocked(&queue), [("other".to_owned(), 1, 20), ("web".to_owned(), 2, 3)]);
    assert_eq!(queue.troubles().count(), 3);
    asked(&mut queue, seconds(40));
    queue.granted(&pod(0, 0).uid, Way::Evict, seconds(40));
    assert_eq!(blocked(&queue), [("other".to_owned(), 1, 20), ("web".to_owned(), 1, 4)]);
}
