"""Reads a node by means of web3.py alone.

usage: python web3.py http://… ws://…
"""

import asyncio
import sys

from web3 import AsyncWeb3, Web3, WebSocketProvider
from web3.exceptions import TransactionNotFound

url, socket_url = sys.argv[1:]
w3 = Web3(Web3.HTTPProvider(url))
earliest = w3.eth.get_block("earliest")
assert earliest["number"] == 12, earliest
assert w3.eth.get_block(earliest["hash"]) == earliest
assert w3.eth.get_block_transaction_count(12) == 0
assert w3.eth.syncing is False
assert w3.eth.gas_price == 0 and w3.eth.max_priority_fee == 0
assert len(w3.eth.fee_history(4, "latest", [50])["reward"]) == 4
assert len(w3.eth.get_logs({"fromBlock": "earliest"})) > 0
try:
    w3.eth.get_transaction_receipt(earliest["hash"])
    raise AssertionError("a receipt is found")
except TransactionNotFound:
    pass
with w3.batch_requests() as batch:
    for i in range(1000):
        batch.add(w3.eth.get_block(12 + i % 10))
    assert [b["number"] for b in batch.execute()] == [12 + i % 10 for i in range(1000)]

# The largest page, and a cursor to the rest.
options = {"resultsPerPage": hex(10**9), "includeData": {"key": True}}
first = w3.manager.request_blocking("arkiv_query", ["*", options])
rest = w3.manager.request_blocking("arkiv_query", ["*", {**options, "cursor": first["cursor"]}])
assert (len(first["data"]), len(rest["data"]), "cursor" in rest) == (100, 50, False)


async def over_websocket():
    async with AsyncWeb3(WebSocketProvider(socket_url)) as w3:
        assert (await w3.eth.get_block("earliest"))["number"] == 12
        assert await w3.eth.get_block_transaction_count(12) == 0
        assert not await w3.eth.syncing


asyncio.run(over_websocket())
