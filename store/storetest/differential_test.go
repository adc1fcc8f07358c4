package storetest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/varvedb/varve/store/entity"
)

// TestSameEntity: a field that is added to Entity must be compared too.
func TestSameEntity(t *testing.T) {
	whole := entity.Entity{
		Key: entity.Key{1}, Creator: entity.Address{1}, Owner: entity.Address{1}, ContentType: "x", Content: []byte{1},
		StringAttributes: map[string]string{"a": "b"}, NumericAttributes: map[string]uint64{"a": 1},
		Sequence: 1, LastModifiedAtBlock: 1, Expiration: 1,
	}
	require.True(t, sameEntity(&whole, &whole))
	for i := range reflect.TypeFor[entity.Entity]().NumField() {
		other := whole
		field := reflect.ValueOf(&other).Elem().Field(i)
		require.False(t, field.IsZero(), "give the field a value above")
		field.SetZero()
		require.False(t, sameEntity(&whole, &other), reflect.TypeFor[entity.Entity]().Field(i).Name)
	}
}
