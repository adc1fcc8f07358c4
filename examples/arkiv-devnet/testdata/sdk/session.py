"""A session with the Python SDK alone.

usage: python session.py http://… ws://… key key
"""

import asyncio
import sys
import time

from arkiv import Arkiv, AsyncArkiv, IntAttr, IntSort, NamedAccount, StrAttr
from arkiv.provider import ProviderBuilder
from arkiv.types import ATTRIBUTES, KEY, CreateOp, DeleteOp, ExtendOp, Operations, UpdateOp

url, socket_url, alice_key, bob_key = sys.argv[1:]
alice = NamedAccount.from_private_key("alice", alice_key)
bob = NamedAccount.from_private_key("bob", bob_key)


def fails(text, call, *args, **options):
    try:
        call(*args, **options)
    except Exception as e:
        assert text in str(e), e
        return
    raise AssertionError(f"nothing fails with {text}")


def session(client, other):
    arkiv, got = client.arkiv, []
    for watch, what in (
        (arkiv.watch_entity_created, "created"),
        (arkiv.watch_entity_updated, "updated"),
        (arkiv.watch_entity_extended, "extended"),
        (arkiv.watch_entity_deleted, "deleted"),
        (arkiv.watch_owner_changed, "given"),
    ):
        watch(lambda event, tx_hash, what=what: got.append(f"{what} {event.key}"))
    time.sleep(0.2)

    before = client.eth.get_entity_count()
    key, receipt = arkiv.create_entity(b"hello", "text/plain", {"session": "python", "n": 0}, expires_in=200)
    e = arkiv.get_entity(key)
    assert (e.payload, e.content_type, e.attributes) == (b"hello", "text/plain", {"session": "python", "n": 0})
    assert e.owner == alice.address and e.created_at_block == receipt.block_number
    assert e.expires_at_block == receipt.block_number - 1 + 100  # the SDK counts from the head that it sees
    assert client.eth.get_entity_count() == before + 1
    assert arkiv.get_block_timing().current_block == receipt.block_number

    arkiv.update_entity(key, b"changed", "text/plain", {"session": "python", "n": 7}, expires_in=300)
    changed = arkiv.get_entity(key)
    assert changed.payload == b"changed" and changed.attributes["n"] == 7
    assert changed.expires_at_block == e.expires_at_block  # of an update, the SDK sends none
    extended = arkiv.extend_entity(key, extend_by=1000)
    assert arkiv.get_entity(key).expires_at_block == extended.block_number - 1 + 500
    assert arkiv.get_entity(key, at_block=receipt.block_number).payload == b"hello"

    fails("is owned by", other.arkiv.delete_entity, key)
    fails("does not exist", arkiv.delete_entity, "0x" + "ab" * 32)
    fails("is none", arkiv.extend_entity, key, extend_by=20)
    arkiv.change_owner(key, bob.address)
    assert arkiv.get_entity(key).owner == bob.address

    made = arkiv.execute(Operations(creates=[CreateOp(f"{i}".encode(), "text/plain", {"many": "python", "i": i}, 2000) for i in range(25)]))
    keys = [c.key for c in made.creates]
    assert len(keys) == 25
    i, many = IntAttr("i"), StrAttr("many")
    page = arkiv.select(KEY, ATTRIBUTES).where((many == "python") & (i >= 5)).order_by(IntSort("i")).max_page_size(7).fetch()
    assert [e.attributes["i"] for e in page] == list(range(5, 25))
    # One transaction, in another order than that of the other form.
    mixed = arkiv.execute(Operations(
        creates=[CreateOp(b"new", "text/plain", {}, 2000)],
        updates=[UpdateOp(keys[0], b"x", "text/plain", {"many": "python", "i": 0}, 2000)],
        deletes=[DeleteOp(keys[1])],
        extensions=[ExtendOp(keys[2], 4000)],
    ))
    assert [len(x) for x in (mixed.creates, mixed.updates, mixed.deletes, mixed.extensions)] == [1, 1, 1, 1]
    assert arkiv.get_entity(keys[0]).payload == b"x" and not arkiv.entity_exists(keys[1])
    other.arkiv.delete_entity(key)
    assert not arkiv.entity_exists(key)
    assert arkiv.select().where(many == "python").count() == 24

    want = sorted(
        [f"{what} {key}" for what in ("created", "updated", "extended", "given", "deleted")]
        + [f"created {k}" for k in (*keys, mixed.creates[0].key)]
        + [f"updated {keys[0]}", f"deleted {keys[1]}", f"extended {keys[2]}"]
    )
    until = time.monotonic() + 10
    while len(got) < len(want) and time.monotonic() < until:
        time.sleep(0.05)
    assert sorted(got) == want, got
    arkiv.cleanup_filters()
    paid = client.eth.get_balance(bob.address)
    arkiv.transfer_eth(bob.address, 5)
    assert client.eth.get_balance(bob.address) == paid + 5


async def over_websocket():
    provider = ProviderBuilder().custom(socket_url).ws().build()
    await provider.connect()
    async with AsyncArkiv(provider, account=alice) as client:
        arkiv, got = client.arkiv, []

        async def created(event, tx_hash):
            got.append(event.key)

        await arkiv.watch_entity_created(created)
        key, _ = await arkiv.create_entity(b"async", "text/plain", {"session": "async"}, expires_in=200)
        assert (await arkiv.get_entity(key)).payload == b"async"
        await arkiv.update_entity(key, b"again", "text/plain", {}, expires_in=200)
        assert (await arkiv.get_entity(key)).payload == b"again"
        await arkiv.delete_entity(key)
        for _ in range(100):
            if got:
                break
            await asyncio.sleep(0.05)
        assert got == [key], got
        await arkiv.cleanup_filters()


build = ProviderBuilder().custom(url).build
with Arkiv(build(), account=alice) as client, Arkiv(build(), account=bob) as other:
    session(client, other)
asyncio.run(over_websocket())
