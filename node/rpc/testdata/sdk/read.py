"""Reads what TestSDK has put into the store, by means of the Python SDK alone.

usage: python read.py http://… ws://…
"""

import asyncio
import json
import sys
import time

from arkiv import Arkiv, AsyncArkiv, IntAttr, IntSort, StrAttr, StrSort
from arkiv.provider import ProviderBuilder
from arkiv.types import ALL, ATTRIBUTES, KEY, PAYLOAD, DESC, QueryOptions
from web3.exceptions import Web3RPCError

ALICE = "0xa100000000000000000000000000000000000001"
n, rank, name, kind = IntAttr("n"), IntAttr("rank"), StrAttr("name"), StrAttr("type")


def key(i):
    return f"0xe0{i:062x}"


def numbers(entities):
    return [int(e.key[60:], 16) for e in entities]


# What queries give, of both clients: the condition and the numbers of the entities.
QUERIES = [
    (name == "n0042", [42]),
    (n == 42, [42]),
    (n < 3, [2, 1, 0]),
    ((n <= 2) & (n != 1), [2, 0]),
    (n > 447, [449, 448]),
    ((n >= 447) & (name != "n0448"), [449, 447]),
    (name > "n0447", [449, 448]),
    ((n == 1) | ((n >= 5) & (n <= 6)), [6, 5, 1]),
    ((name >= "n0448") & (name <= "n0449") & ~(n == 448), [449]),
    (~(kind == "node"), [3]),
    ('type = "say "hi" \\d"', [3]),
    ("!rank", [3]),
    (f"$key = {key(8)}", [8]),
    (f'$owner = "{ALICE}" AND $createdAtBlock = 10 AND n < 2', [1, 0]),
    ("n in (1 2 3) && $expiration > 5", [2, 1]),
    ('name ~ "n000[12]"', [2, 1]),
    ('name GLOB "n000[12]" AND n NOT IN (1)', [2]),
    ('n < 4 And name Not Glob "n000[012]"', []),
    ("n in (1 2) and !in and not not = 3", [2, 1]),
]


def check_entity(e):
    assert e.key == key(7) and e.owner.lower() == ALICE
    assert (e.payload, e.content_type) == (b"payload 7", "text/plain")
    assert (e.expires_at_block, e.created_at_block, e.last_modified_at_block) == (1010, 10, 10)
    assert (e.transaction_index, e.operation_index) == (0, 7)
    assert e.attributes == {"name": "n0007", "type": "node", "n": 7, "rank": 0}


def reads(client):
    arkiv = client.arkiv
    assert client.is_connected()
    assert client.eth.chain_id == 1337 and client.eth.block_number == 21
    assert client.eth.get_entity_count() == 450
    timing = arkiv.get_block_timing()
    assert timing.current_block == 21 and timing.duration == 2 and timing.current_block_time > 1_600_000_000

    check_entity(arkiv.get_entity(key(7)))
    assert arkiv.entity_exists(key(7)) and not arkiv.entity_exists(key(999))
    assert not arkiv.entity_exists(key(300), at_block=19) and arkiv.entity_exists(key(300), at_block=20)
    assert arkiv.get_entity(key(3), at_block=20).payload == b"payload 3"
    assert arkiv.get_entity(key(3), fields=KEY | PAYLOAD).payload == b"changed"
    for condition, want in QUERIES:
        assert numbers(arkiv.select(KEY).where(condition).fetch()) == want, condition
    assert arkiv.select().where(n < 100).count() == 99
    assert arkiv.select().count() == 450
    ordered = arkiv.select(KEY, ATTRIBUTES).where(n < 20).order_by(IntSort("rank", DESC), StrSort("name")).max_page_size(4).fetch()
    assert numbers(ordered)[:6] == [6, 13, 5, 12, 19, 4]
    assert numbers(arkiv.select().order_by(IntSort("$createdAtBlock"), IntSort("n", DESC)).limit(2).fetch()) == [249, 248]
    for size in (70, 150, 500):
        assert numbers(arkiv.select().max_page_size(size).fetch()) == list(range(449, -1, -1))
    past = arkiv.select().at_block(19).max_page_size(100).fetch()
    assert numbers(past) == list(range(249, -1, -1)) and past.block_number == 19
    assert len(arkiv.query_entities_page("*", QueryOptions(attributes=ALL, max_results_per_page=3)).entities) == 3
    for call, code in ((lambda: arkiv.query_entities_page("n = "), -32010), (lambda: client.eth.estimate_costs("0x1b"), -32601)):
        try:
            call()
            raise AssertionError("what is wrong, or is not there, is answered")
        except Web3RPCError as e:
            assert e.rpc_response["error"]["code"] == code, e


async def reads_async(client):
    arkiv = client.arkiv
    assert await client.eth.chain_id == 1337
    assert await client.eth.get_entity_count() == 450
    assert (await arkiv.get_block_timing()).current_block == 21
    check_entity(await arkiv.get_entity(key(7)))
    for condition, want in QUERIES:
        assert numbers([e async for e in arkiv.select(KEY).where(condition).fetch()]) == want, condition
    assert await arkiv.select().count() == 450
    assert numbers([e async for e in arkiv.select().max_page_size(70).fetch()]) == list(range(449, -1, -1))
    assert numbers([e async for e in arkiv.select().at_block(19).limit(2).fetch()]) == [249, 248]


def events(client):
    """Collects what comes after a line on standard output says that it may."""
    arkiv, got = client.arkiv, []
    for watch, what in (
        (arkiv.watch_entity_created, "created"),
        (arkiv.watch_entity_updated, "updated"),
        (arkiv.watch_entity_extended, "extended"),
        (arkiv.watch_entity_deleted, "deleted"),
        (arkiv.watch_owner_changed, "owner changed"),
    ):
        def add(event, tx_hash, what=what):
            owner = getattr(event, "owner_address", None) or event.new_owner_address
            got.append(" ".join(str(x) for x in (what, owner.lower(), getattr(event, "expiration_block", None)) if x))
        watch(add)
    print("subscribed", flush=True)
    until = time.monotonic() + 30
    while len(got) < 6 and time.monotonic() < until:
        time.sleep(0.02)
    print(json.dumps(sorted(got)), flush=True)
    arkiv.cleanup_filters()


async def over_websocket(url):
    provider = ProviderBuilder().custom(url).ws().build()
    await provider.connect()  # the SDK's own context manager does not
    async with AsyncArkiv(provider) as client:
        await reads_async(client)


with Arkiv(ProviderBuilder().custom(sys.argv[1]).build()) as client:
    reads(client)
    asyncio.run(over_websocket(sys.argv[2]))
    events(client)
