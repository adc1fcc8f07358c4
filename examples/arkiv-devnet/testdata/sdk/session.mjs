// A session with the JavaScript SDK alone.
// usage: node session.mjs http://… ws://… key key
import assert from "node:assert/strict"
import { createPublicClient, createWalletClient, http, webSocket } from "@arkiv-network/sdk"
import { privateKeyToAccount } from "@arkiv-network/sdk/accounts"
import { localhost } from "@arkiv-network/sdk/chains"
import { asc, eq, gt, lte } from "@arkiv-network/sdk/query"
import { jsonToPayload, stringToPayload } from "@arkiv-network/sdk/utils"

const [, , url, socketURL, aliceKey, bobKey] = process.argv
const alice = privateKeyToAccount(aliceKey)
const bob = privateKeyToAccount(bobKey)
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const same = (a, b) => assert.equal(a.toLowerCase(), b.toLowerCase())

async function session(transport, name) {
  const pollingInterval = 50
  const client = createPublicClient({ chain: localhost, transport, pollingInterval })
  const wallet = createWalletClient({ chain: localhost, transport, account: alice, pollingInterval })
  const other = createWalletClient({ chain: localhost, transport, account: bob, pollingInterval })
  const rpc = (method, ...params) => client.request({ method, params })

  const got = []
  const add = (what) => (e) => got.push(`${what} ${e.entityKey}`)
  const stop = await client.subscribeEntityEvents({
    onError: (error) => { throw error },
    onEntityCreated: add("created"), onEntityUpdated: add("updated"), onEntityDeleted: add("deleted"),
    onEntityExpired: add("expired"), onEntityExpiresInExtended: add("extended"), // of other owners the SDK does not tell
  }, 50)
  await wait(500) // until they are installed

  assert.equal(await client.getChainId(), 1337)
  const before = await client.getEntityCount()
  const funds = await client.getBalance({ address: alice.address })

  const { entityKey, txHash } = await wallet.createEntity({
    payload: stringToPayload("hello"), contentType: "text/plain", expiresIn: 200,
    attributes: [{ key: "session", value: name }, { key: "n", value: 0 }],
  })
  const receipt = await client.getTransactionReceipt({ hash: txHash })
  assert.equal(receipt.status, "success")
  assert.equal(receipt.type, "eip1559")
  assert.ok(await client.getBalance({ address: alice.address }) < funds)
  const tx = await client.getTransaction({ hash: txHash })
  same(tx.from, alice.address)
  assert.equal(tx.blockHash, (await client.getBlock({ blockNumber: receipt.blockNumber })).hash)
  let e = await client.getEntity(entityKey)
  same(e.owner, alice.address)
  assert.equal(e.toText(), "hello")
  assert.equal(e.expiresAtBlock, receipt.blockNumber + 100n)
  assert.equal(e.createdAtBlock, receipt.blockNumber)
  assert.equal(await client.getEntityCount(), before + 1)
  const { currentBlock } = await client.getBlockTiming()
  assert.equal(currentBlock, receipt.blockNumber)

  await wallet.updateEntity({
    entityKey, payload: jsonToPayload({ a: 1 }), contentType: "application/json", expiresIn: 300,
    attributes: [{ key: "session", value: name }, { key: "n", value: 7 }],
  })
  e = await client.getEntity(entityKey)
  assert.deepEqual(e.toJson(), { a: 1 })
  const until = e.expiresAtBlock
  await wallet.extendEntity({ entityKey, expiresIn: 20 })
  assert.equal((await client.getEntity(entityKey)).expiresAtBlock, until + 10n)
  const past = await client.query(`$key = ${entityKey}`, { atBlock: receipt.blockNumber, includeData: { payload: true } })
  assert.equal(past.entities[0].toText(), "hello")

  // Who does not own an entity may not change it, and what is not there cannot be changed.
  await assert.rejects(other.deleteEntity({ entityKey }), /is owned by/)
  await assert.rejects(other.deleteEntity({ entityKey }, { gas: 100_000n }), /is owned by/) // in a block, as failed
  await assert.rejects(wallet.deleteEntity({ entityKey: `0x${"ab".repeat(32)}` }), /does not exist/)

  await wallet.changeOwnership({ entityKey, newOwner: bob.address })
  same((await client.getEntity(entityKey)).owner, bob.address)
  const many = await wallet.mutateEntities({
    creates: Array.from({ length: 25 }, (_, i) => ({
      payload: stringToPayload(`${i}`), contentType: "text/plain", expiresIn: i === 0 ? 2 : 2000,
      attributes: [{ key: "many", value: name }, { key: "i", value: i }],
    })),
  })
  assert.equal(many.createdEntities.length, 25)
  assert.deepEqual([many.deletedEntities, many.ownershipChanges], [[], []])
  const page = await client.buildQuery().where([eq("many", name), gt("i", 0)]).orderBy(asc("i", "number")).withAttributes().limit(10).fetch()
  const all = [...page.entities]
  while (page.hasNextPage()) {
    await page.next()
    all.push(...page.entities)
  }
  assert.deepEqual(all.map((e) => e.attributes.find((a) => a.key === "i").value), Array.from({ length: 24 }, (_, i) => i + 1))
  await other.deleteEntity({ entityKey }) // by its new owner, in a later block: the short one expires
  assert.equal(await client.buildQuery().where([eq("many", name), lte("i", 100)]).count(), 24)
  await assert.rejects(client.getEntity(entityKey), { name: "NoEntityFoundError" })

  // A transfer of money, and numbers that wallets ask for.
  const paid = await client.getBalance({ address: bob.address })
  const hash = await wallet.sendTransaction({ to: bob.address, value: 5n })
  assert.equal((await client.waitForTransactionReceipt({ hash })).status, "success")
  assert.equal(await client.getBalance({ address: bob.address }), paid + 5n)
  assert.ok((await client.getFeeHistory({ blockCount: 4, rewardPercentiles: [50] })).reward.length > 0)
  assert.equal(await client.getTransactionCount({ address: alice.address, blockTag: "pending" }), await client.getTransactionCount({ address: alice.address }))
  assert.equal((await rpc("eth_getBlockReceipts", "latest")).length, 1)
  assert.equal((await client.getLogs({ blockHash: receipt.blockHash })).length, 2) // one of each form

  const want = [
    ...["created", "updated", "extended"].map((what) => `${what} ${entityKey}`),
    ...many.createdEntities.map((key) => `created ${key}`), `expired ${many.createdEntities[0]}`, `deleted ${entityKey}`,
  ]
  for (let i = 0; i < 100 && got.length < want.length; i++) await wait(50)
  assert.deepEqual(got, want)
  stop()

  // A reorganisation takes back what was done, and the chain goes on.
  const kept = await client.getEntityCount()
  const lost = await wallet.createEntity({ payload: stringToPayload("lost"), contentType: "text/plain", expiresIn: 200, attributes: [] })
  const { blockNumber } = await client.getTransactionReceipt({ hash: lost.txHash })
  await rpc("devnet_reorg", 1)
  assert.equal(await client.getBlockNumber({ cacheTime: 0 }), blockNumber + 1n)
  await assert.rejects(client.getEntity(lost.entityKey), { name: "NoEntityFoundError" })
  assert.equal(await client.getEntityCount(), kept)
  const again = await wallet.createEntity({ payload: stringToPayload("kept"), contentType: "text/plain", expiresIn: 200, attributes: [] })
  await rpc("devnet_reorg", 1, true) // now the transaction comes again
  assert.equal((await client.getEntity(again.entityKey)).toText(), "kept")
}

await session(http(url, { batch: true }), "http")
await session(webSocket(socketURL), "socket")
process.exit(0)
