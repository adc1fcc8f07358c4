// Reads what TestSDK has put into the store, by means of the JavaScript SDK alone.
// usage: node read.mjs http://… ws://…
import assert from "node:assert/strict"
import { createPublicClient as viemClient } from "viem"
import { createPublicClient, http, webSocket } from "@arkiv-network/sdk"
import { localhost } from "@arkiv-network/sdk/chains"
import { and, asc, desc, eq, gt, gte, lt, lte, neq, not, or } from "@arkiv-network/sdk/query"

const key = (n) => `0xe0${n.toString(16).padStart(62, "0")}`
const alice = "0xa100000000000000000000000000000000000001"
const numbers = (entities) => entities.map((e) => Number.parseInt(e.key.slice(60), 16))
const range = (from, to) => Array.from({ length: Math.abs(to - from) + 1 }, (_, i) => (from < to ? from + i : from - i))

async function reads(client) {
  assert.equal(await client.getChainId(), 1337)
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), 21n)
  assert.equal(await client.getEntityCount(), 450)
  const timing = await client.getBlockTiming()
  assert.equal(timing.currentBlock, 21n)
  assert.equal(timing.blockDuration, 2)
  assert.ok(timing.currentBlockTime > 1_600_000_000)

  const e = await client.getEntity(key(7))
  assert.equal(e.key, key(7))
  assert.equal(e.owner, alice)
  assert.equal(e.creator, alice)
  assert.equal(e.contentType, "text/plain")
  assert.equal(e.toText(), "payload 7")
  assert.equal(e.expiresAtBlock, 1010n)
  assert.equal(e.createdAtBlock, 10n)
  assert.equal(e.lastModifiedAtBlock, 10n)
  assert.equal(e.transactionIndexInBlock, 0n)
  assert.equal(e.operationIndexInTransaction, 7n)
  assert.deepEqual(e.attributes, [
    { key: "name", value: "n0007" }, { key: "type", value: "node" }, { key: "n", value: 7 }, { key: "rank", value: 0 },
  ])
  await assert.rejects(client.getEntity(key(999)), { name: "NoEntityFoundError" })

  const found = async (...predicates) => numbers((await client.buildQuery().where(predicates).fetch()).entities)
  const first = async (...predicates) => (await found(...predicates)).slice(0, 3)
  assert.deepEqual(await found(eq("name", "n0042")), [42])
  assert.deepEqual(await found(eq("n", 42)), [42])
  assert.deepEqual(await found(lt("n", 3)), [2, 1, 0])
  assert.deepEqual(await found(lte("n", 2), neq("n", 1)), [2, 0])
  assert.deepEqual(await found(gt("n", 447)), [449, 448])
  assert.deepEqual(await found(gte("n", 447), neq("name", "n0448")), [449, 447])
  assert.deepEqual(await found(gt("name", "n0447")), [449, 448])
  assert.deepEqual(await found(or([eq("n", 1), and([gte("n", 5), lte("n", 6)])])), [6, 5, 1])
  assert.deepEqual(await found(not("rank")), [3])
  assert.deepEqual(await found(eq("in", 1)), []) // a name that is a word of the language
  assert.deepEqual(await first(not("and"), not("not")), [449, 448, 447])
  assert.deepEqual(await found(eq("type", 'say "hi" \\d')), [3])
  assert.deepEqual(await first(eq("type", "node")), [449, 448, 447])
  assert.deepEqual(await first(), [449, 448, 447])
  assert.equal((await client.buildQuery().ownedBy(alice).createdBy(alice).fetch()).entities.length, 200)
  assert.deepEqual((await client.buildQuery().where(eq("n", 1)).ownedBy(`0x${"00".repeat(20)}`).fetch()).entities, [])
  assert.equal(await client.buildQuery().where(lt("n", 100)).count(), 99)

  // What is asked for is there, and nothing else.
  const [bare] = (await client.buildQuery().where(eq("n", 5)).fetch()).entities
  assert.deepEqual([bare.payload, bare.owner, bare.attributes], [undefined, undefined, []])
  const [full] = (await client.buildQuery().where(eq("n", 5)).withPayload().withAttributes().withMetadata().fetch()).entities
  assert.equal(full.toText(), "payload 5")
  assert.equal(full.owner, alice)
  assert.equal(full.attributes.length, 4)

  // Several columns, and pages to the end.
  const ordered = await client.buildQuery().where(lt("n", 20)).orderBy(desc("rank", "number")).orderBy(asc("name", "string")).fetch()
  assert.deepEqual(numbers(ordered.entities).slice(0, 6), [6, 13, 5, 12, 19, 4])
  const byBlock = await client.buildQuery().orderBy("$createdAtBlock", "number").orderBy("n", "number", "desc").limit(2).fetch()
  assert.deepEqual(numbers(byBlock.entities), [249, 248])
  const page = await client.buildQuery().limit(70).fetch()
  const all = numbers(page.entities)
  while (page.hasNextPage()) {
    await page.next()
    all.push(...numbers(page.entities))
  }
  assert.deepEqual(all, range(449, 0))

  // Past blocks.
  assert.deepEqual(await (async () => numbers((await client.buildQuery().validAtBlock(19n).limit(2).fetch()).entities))(), [249, 248])
  const past = await client.query(`$key = ${key(3)}`, { atBlock: 20n, includeData: { payload: true, attributes: true, metadata: true } })
  assert.equal(past.blockNumber, 20n)
  assert.equal(past.entities[0].toText(), "payload 3")
  const sorted = await client.query("n < 3", { orderBy: [{ name: "n", type: "numeric", desc: "asc" }], resultsPerPage: 2 })
  assert.deepEqual(numbers(sorted.entities), [0, 1])
  const rest = await client.query("n < 3", { orderBy: [{ name: "n", type: "numeric", desc: "asc" }], resultsPerPage: 2, cursor: sorted.cursor })
  assert.deepEqual([numbers(rest.entities), rest.cursor], [[2], undefined])
  await assert.rejects(client.query("n = "), { code: -32010 })
}

// events collects what comes after a line on standard output says that it may.
async function events(clients, plain) {
  const got = clients.map(() => [])
  const blocks = plain.map(() => [])
  const stops = plain.map((client, i) => client.watchBlocks({
    onBlock: (block) => blocks[i].push(block), onError: (error) => { throw error }, emitMissed: true, pollingInterval: 50,
  }))
  for (const [i, client] of clients.entries()) {
    const add = (name, ...fields) => (e) => got[i].push([name, Number(e.entityKey), ...fields.map((f) => e[f])].join(" "))
    stops.push(await client.subscribeEntityEvents({
      onError: (error) => { throw error },
      onEntityCreated: add("created", "owner", "expirationBlock"),
      onEntityUpdated: add("updated", "oldExpirationBlock", "newExpirationBlock"),
      onEntityDeleted: add("deleted", "owner"),
      onEntityExpired: add("expired", "owner"),
      onEntityExpiresInExtended: add("extended", "oldExpirationBlock", "newExpirationBlock"),
    }, 50))
  }
  await new Promise((resolve) => setTimeout(resolve, 500)) // until they are installed
  console.log("subscribed")
  const until = Date.now() + 30_000
  const waits = () => got.some((list) => list.length < 6) || blocks.some((list) => !list.some((block) => block.number === 24n))
  while (waits() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 20))
  for (const list of got) console.log(JSON.stringify(list.map((text) => text.replace(/^(\D+) \d\S* ?/, "$1 ").trim())))
  for (const stop of stops) stop()
  for (const [i, client] of plain.entries()) {
    const last = blocks[i].find((block) => block.number === 24n) // viem may tell of blocks in another order
    assert.deepEqual([last.number, last.hash.length, last.parentHash.length], [24n, 66, 66])
    const same = await client.getBlock({ blockNumber: 24n })
    assert.deepEqual([same.hash, same.parentHash], [last.hash, last.parentHash])
    const parent = await client.getBlock({ blockHash: same.parentHash })
    assert.deepEqual([parent.number, parent.hash], [23n, same.parentHash])
    assert.equal((await client.getLogs({ blockHash: same.hash })).length, 4)
    const first = await client.getBlock({ blockNumber: 10n })
    assert.equal((await client.getLogs({ blockHash: first.hash })).length, 500)
  }
}

// large reads a page that is many times what a node holds of an answer.
async function large(client) {
  const until = Date.now() + 30_000
  while ((await client.buildQuery().where(eq("type", "large")).limit(1).fetch()).entities.length === 0) {
    assert.ok(Date.now() < until)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const page = await client.buildQuery().where(eq("type", "large")).withPayload().limit(30).fetch()
  assert.deepEqual(numbers(page.entities), range(629, 600))
  for (const e of page.entities) assert.deepEqual([e.payload.length, e.payload[399_999]], [400_000, Number.parseInt(e.key.slice(60), 16) - 600])
  if (page.hasNextPage()) await page.next()
  assert.equal(page.hasNextPage(), false)
}

const transports = [http(process.argv[2], { batch: true, maxResponseBodySize: false }), webSocket(process.argv[3])]
const clients = transports.map((transport) => createPublicClient({ chain: localhost, transport }))
const plain = transports.map((transport) => viemClient({ chain: localhost, transport }))
for (const client of clients) await reads(client)
await events(clients, plain)
console.log("large")
for (const client of clients) await large(client)
process.exit(0)
