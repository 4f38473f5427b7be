"""Messages between loop and children: framing, descriptors, limits."""

from __future__ import annotations

import os
import socket

import pytest

from evalcore.worker.post import Inbox, Post, PostError, pack, send_with


def pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def test_bodies_arrive_whole_and_in_order() -> None:
    ours, theirs = pair()
    sender, receiver = Post(ours), Post(theirs)
    for number in range(3):
        sender.send({"n": number, "text": "x" * 5000})
    assert [receiver.receive().body["n"] for _ in range(3)] == [0, 1, 2]  # type: ignore[union-attr]


def test_descriptors_travel_beside_their_own_message() -> None:
    ours, theirs = pair()
    sender, receiver = Post(ours), Post(theirs)
    read, write = os.pipe()
    sender.send({"n": 0})
    sender.send({"n": 1}, [write])
    os.close(write)
    first, second = receiver.receive(), receiver.receive()
    assert first is not None and second is not None
    assert first.descriptors == [] and len(second.descriptors) == 1
    os.write(second.descriptors[0], b"through")
    assert os.read(read, 10) == b"through"
    second.close()
    assert second.descriptors == []


def test_the_end_of_the_stream_is_none() -> None:
    ours, theirs = pair()
    ours.close()
    assert Post(theirs).receive() is None


@pytest.mark.parametrize(
    "data", [b"\xff" * 64, pack({"a": 1})[:8] + b"[1,2,3]", b"\0\0\0\x02\0\0\0\0[]", b"\0\0\0\x04\0\0\0\x01null"]
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    ours, theirs = pair()
    ours.sendall(data)
    inbox = Inbox(1 << 20)
    inbox.receive(theirs)
    with pytest.raises(PostError):
        inbox.take()


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    ours, theirs = pair()
    ours.sendall(pack({"text": "x" * 2000})[:8])
    inbox = Inbox(1000)
    inbox.receive(theirs)
    with pytest.raises(PostError):
        inbox.take()


def test_too_many_descriptors_are_refused() -> None:
    ours, theirs = pair()
    read, write = os.pipe()
    inbox = Inbox(1 << 20)
    with pytest.raises(PostError):
        for _ in range(20):
            send_with(ours, pack({}, 0), [write])
            inbox.receive(theirs)
    inbox.close()
    os.close(read)
    os.close(write)
