package chaintest

import (
	"encoding/binary"

	"github.com/varvedb/varve/node/chain"
	"github.com/varvedb/varve/store/entity"
)

// After returns a chain that continues after a block of a store without hashes:
// it has block 0, and the blocks that are passed to Give.
func After(id, block uint64) *Chain {
	c := New(id, block)
	c.skipped = block
	return c
}

// Give adds a block of operations and renumbers it. The block is hidden until
// Reveal. It returns the block as a follower must apply it; expirations come
// first, as in each block.
func (c *Chain) Give(ops []entity.Op) (entity.Block, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := draft{rng: c.rng}
	d.begin(c.skipped+uint64(len(c.blocks)), c.blocks[len(c.blocks)-1].block.Hash)
	for rest := d.addTransaction(ops); len(rest) > 0; {
		n := fitTransaction(rest)
		if err := d.give(rest[:n]); err != nil {
			return entity.Block{}, err
		}
		rest = rest[n:]
	}
	c.blocks = append(c.blocks, made{block: d.block, receipts: d.receipts, want: d.want})
	c.hidden++
	return d.want, nil
}

// Reveal shows the next given block. Blocks below keep are dropped, because no
// follower asks for them any more.
func (c *Chain) Reveal(keep uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden--
	for i := c.forgotten + 1; i < len(c.blocks) && c.skipped+uint64(i) < keep; i++ {
		c.blocks[i], c.forgotten = made{}, i
	}
}

// addTransaction adds the first transaction, whose receipt has the expirations,
// and returns the other operations.
func (d *draft) addTransaction(ops []entity.Op) (rest []entity.Op) {
	var logs []chain.Log
	for _, op := range ops {
		if op.Kind != entity.Expire {
			rest = append(rest, op)
			continue
		}
		op.TxIndex, op.OpIndex = 0, uint32(len(logs))
		told := logOf(chain.TopicExpired, op.Key, entity.Address{})
		if len(logs)%2 == 0 { // as some versions of the chain have it
			told.Topics, told.Data = told.Topics[:1], op.Key[:]
		}
		logs = append(logs, told)
		d.want.Ops = append(d.want.Ops, op)
	}
	d.send(entity.Address{}, &chain.Address{0: 0x42}, []byte{1}, 1, logs)
	return rest
}

// order is the order in which the operations of a transaction are executed.
var order = map[entity.Kind]int{entity.Create: 0, entity.Delete: 1, entity.Update: 2, entity.ExtendBTL: 3, entity.ChangeOwner: 4}

// fitTransaction returns how many of the first operations one transaction can
// carry: it has one sender, who creates and updates, and a fixed order of
// operations.
func fitTransaction(ops []entity.Op) int {
	var sender *entity.Address
	for i := range ops {
		op := &ops[i]
		if i > 0 && order[op.Kind] < order[ops[i-1].Kind] {
			return i
		}
		if op.Kind == entity.Create || op.Kind == entity.Update {
			if sender != nil && *sender != op.Owner {
				return i
			}
			sender = &op.Owner
		}
	}
	return len(ops)
}

// give adds one transaction with these operations.
func (d *draft) give(list []entity.Op) error {
	var from entity.Address
	var ops chain.Operations
	var logs []chain.Log
	var index [5]uint32
	for _, op := range list {
		kind := order[op.Kind]
		op.TxIndex, op.OpIndex = uint32(len(d.block.Transactions)), index[kind]
		index[kind]++
		d.want.Ops = append(d.want.Ops, op)
		content := chain.Create{BTL: op.BTL, ContentType: op.ContentType, Payload: op.Content, Strings: op.StringAttributes, Numbers: op.NumericAttributes}
		until := entity.AddBlocks(d.want.Number, op.BTL)
		switch op.Kind {
		case entity.Create:
			from, ops.Creates = op.Owner, append(ops.Creates, content)
			logs = append(logs, logOf(chain.TopicCreated, op.Key, op.Owner, until, 0))
		case entity.Update:
			from, ops.Updates = op.Owner, append(ops.Updates, chain.Update{Key: op.Key, Create: content})
			logs = append(logs, logOf(chain.TopicUpdated, op.Key, op.Owner, 0, until, 0))
		case entity.Delete:
			ops.Deletes = append(ops.Deletes, op.Key)
			logs = append(logs, logOf(chain.TopicDeleted, op.Key, op.Owner))
		case entity.ExtendBTL:
			ops.Extensions = append(ops.Extensions, chain.Extension{Key: op.Key, Blocks: op.BTL})
			logs = append(logs, logOf(chain.TopicExtended, op.Key, op.Owner, 0, until, 0))
		case entity.ChangeOwner:
			ops.OwnerChanges = append(ops.OwnerChanges, chain.OwnerChange{Key: op.Key, Owner: op.Owner})
			logs = append(logs, logOf(chain.TopicOwnerChanged, op.Key, op.Owner))
		}
	}
	input, err := ops.Encode()
	if err != nil {
		return err
	}
	d.send(from, &chain.Processor, input, 1, logs)
	return nil
}

// begin begins a block.
func (d *draft) begin(number uint64, parent entity.Hash) {
	d.want.Number, d.want.Time = number, 1_700_000_000+2*number
	binary.BigEndian.PutUint64(d.want.Hash[:], d.rng.Uint64())
	binary.BigEndian.PutUint64(d.want.Hash[24:], number)
	d.block = chain.Block{
		Number: chain.Quantity(number), Hash: d.want.Hash, ParentHash: parent, Timestamp: chain.Quantity(d.want.Time),
	}
}
