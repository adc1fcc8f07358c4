package chain

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/varvedb/varve/store/entity"
)

// The parts of an execution client's answers that a follower reads.
type (
	// Block is an answer of eth_getBlockByNumber with whole transactions.
	Block struct {
		Number       Quantity      `json:"number"`
		Hash         entity.Hash   `json:"hash"`
		ParentHash   entity.Hash   `json:"parentHash"`
		Timestamp    Quantity      `json:"timestamp"`
		Transactions []Transaction `json:"transactions"`
	}
	// Transaction is one transaction of a block.
	Transaction struct {
		Hash  entity.Hash `json:"hash"`
		From  Address     `json:"from"`
		To    *Address    `json:"to"` // nil for one that makes a contract
		Input Data        `json:"input"`
	}
	// Receipt is one receipt of eth_getBlockReceipts.
	Receipt struct {
		BlockHash       entity.Hash `json:"blockHash"`
		TransactionHash entity.Hash `json:"transactionHash"`
		Status          Quantity    `json:"status"` // 1 for a transaction that was executed
		Logs            []Log       `json:"logs"`
	}
	// Log is one event of a receipt.
	Log struct {
		Address Address       `json:"address"`
		Topics  []entity.Hash `json:"topics"`
		Data    Data          `json:"data"`
	}
)

// Quantity is an integer in 0x form, without leading zeros.
type Quantity uint64

// MarshalText implements encoding.TextMarshaler.
func (q Quantity) MarshalText() ([]byte, error) {
	return append([]byte("0x"), strconv.FormatUint(uint64(q), 16)...), nil
}

// UnmarshalText is the inverse of MarshalText.
func (q *Quantity) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if !ok || err != nil {
		return fmt.Errorf("quantity %.80q: want 0x and up to 16 hex digits", text)
	}
	*q = Quantity(n)
	return nil
}

// Data is bytes in 0x form.
type Data []byte

// MarshalText implements encoding.TextMarshaler.
func (d Data) MarshalText() ([]byte, error) { return hex.AppendEncode([]byte("0x"), d), nil }

// UnmarshalText is the inverse of MarshalText.
func (d *Data) UnmarshalText(text []byte) (err error) {
	digits, ok := strings.CutPrefix(string(text), "0x")
	if !ok {
		return errors.New("data: want 0x and hex digits")
	}
	if *d, err = hex.DecodeString(digits); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	return nil
}

// Address is an account in 0x form.
type Address entity.Address

// MarshalText implements encoding.TextMarshaler.
func (a Address) MarshalText() ([]byte, error) { return []byte(entity.Address(a).String()), nil }

// UnmarshalText is the inverse of MarshalText. It also accepts capitals, which
// some clients use as a checksum.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := entity.ParseAddress(string(text))
	*a = Address(parsed)
	return err
}
