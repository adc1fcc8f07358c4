// Reads a node by means of viem alone, which sends its calls in batches.
// usage: node viem.mjs http://… ws://…
import assert from "node:assert/strict"
import { createPublicClient, http, TransactionReceiptNotFoundError, webSocket } from "viem"

async function reads(client) {
  const all = await Promise.all(Array.from({ length: 1050 }, (_, i) => client.getBlock({ blockNumber: BigInt(12 + (i % 10)) })))
  assert.deepEqual(all.map((b) => Number(b.number)), Array.from({ length: 1050 }, (_, i) => 12 + (i % 10)))
  const earliest = await client.getBlock({ blockTag: "earliest" })
  assert.equal(earliest.number, 12n)
  assert.equal((await client.getBlock({ blockHash: earliest.hash })).hash, earliest.hash)
  assert.equal(await client.getBlockTransactionCount({ blockNumber: 12n }), 0)
  assert.ok((await client.getLogs({ fromBlock: "earliest" })).length > 0)
  assert.equal(await client.getGasPrice(), 0n)
  assert.equal((await client.getFeeHistory({ blockCount: 4, rewardPercentiles: [50] })).reward.length, 4)
  assert.equal(await client.request({ method: "eth_syncing" }), false)
  await assert.rejects(client.getTransactionReceipt({ hash: earliest.hash }), TransactionReceiptNotFoundError)
  // The largest page, and a cursor to the rest.
  const options = { resultsPerPage: "0x3b9aca00", includeData: { key: true } }
  const first = await client.request({ method: "arkiv_query", params: ["*", options] })
  const rest = await client.request({ method: "arkiv_query", params: ["*", { ...options, cursor: first.cursor }] })
  assert.deepEqual([first.data.length, rest.data.length, rest.cursor], [100, 50, undefined])
}

const [, , url, socketURL] = process.argv
await reads(createPublicClient({ transport: http(url, { batch: true }) }))
await reads(createPublicClient({ transport: webSocket(socketURL) }))
process.exit(0)
