package rpc

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/varvedb/varve/internal/service"
)

// incoming is a message that a call is receiving.
type incoming struct {
	message protobuf.Message
	admit   func(memory int64) error // called before the message is decoded
	size    int64                    // bytes of the message
	err     error                    // why it was not decoded; gRPC itself would answer with another code
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return protocol.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	in.size = int64(whole.Len())
	memory, err := decodedBytes(whole.ReadOnlyData(), in.message.ProtoReflect().Descriptor())
	if err == nil {
		err = in.admit(memory)
	}
	if err != nil {
		in.err = err
		return nil
	}
	return protobuf.Unmarshal(whole.ReadOnlyData(), in.message)
}

// Upper bounds of the memory of an item in a list or map, besides its bytes: of
// a message, including the values that the service makes of it, of a text, and
// of a number.
const (
	messageBytes = 200
	textBytes    = 48
	numberBytes  = 8
)

// decodedBytes estimates the memory of a decoded message besides its bytes,
// without decoding it, because an empty event is only two bytes, or fewer when
// compressed. It fails with service.ErrTooLarge as soon as the limit is
// exceeded. The recursion ends, because the messages of this package and of
// gRPC's services do not contain themselves.
func decodedBytes(text []byte, of protoreflect.MessageDescriptor) (memory int64, err error) {
	counts := map[protowire.Number]int{} // of the items of each list
	for len(text) > 0 {
		number, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return memory, nil // the decoder names the fault
		}
		size := protowire.ConsumeFieldValue(number, kind, text[n:])
		if size < 0 {
			return memory, nil
		}
		value := text[n : n+size]
		text = text[n+size:]
		field := of.Fields().ByNumber(number)
		if field == nil {
			continue
		}
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		if field.IsList() || field.IsMap() {
			items, each := 1, int64(numberBytes)
			switch k := field.Kind(); {
			case k == protoreflect.MessageKind:
				each = messageBytes
			case k == protoreflect.StringKind, k == protoreflect.BytesKind:
				each = textBytes
			case kind == protowire.BytesType:
				items = len(value) // packed numbers, of a byte at least
			}
			counts[number] += items
			if counts[number] > service.MaxList {
				return 0, fmt.Errorf("%w: more than %d items in the list %q; cut the request into several", service.ErrTooLarge, service.MaxList, field.Name())
			}
			memory += int64(items) * each
		}
		if field.Kind() == protoreflect.MessageKind && !field.IsMap() && kind == protowire.BytesType {
			more, err := decodedBytes(value, field.Message())
			if memory += more; err != nil {
				return 0, err
			}
		}
		if memory > service.MaxDecoded {
			return 0, fmt.Errorf("%w: the message takes more than %d bytes of memory; cut the request into several", service.ErrTooLarge, service.MaxDecoded)
		}
	}
	return memory, nil
}

// receive receives a message within its time limit.
func (c *call) receive(ctx context.Context, m any, receive func(any) error) error {
	message, ok := m.(protobuf.Message)
	if !ok {
		return fmt.Errorf("receive: %T is no message of Protocol Buffers", m)
	}
	if err := c.received.Take(ctx, int64(c.in.service.MaxMessage())); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	c.received.Await()
	cut := func() {}
	if t := c.in.with.Timeouts.Read; t > 0 {
		timer := time.AfterFunc(t, func() { c.cut(fmt.Errorf("%w: its request did not come in %s", service.ErrSlow, t)) })
		defer timer.Stop()
		cut = func() { timer.Stop() }
	}
	in := &incoming{message: message, admit: func(memory int64) error {
		cut() // it is there
		c.received.Work()
		return c.decoded.Take(ctx, memory)
	}}
	err := receive(in)
	c.received.Work()
	c.received.Shrink(in.size)
	if in.err != nil {
		return fmt.Errorf("receive: %w", in.err)
	}
	return err
}
