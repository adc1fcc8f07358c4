package scaler

import "github.com/varvedb/varve/internal/splitmix"

// vocabulary has 64 words, so that six random bits select one.
var vocabulary = [64]string{
	"amber", "anchor", "basin", "birch", "bridge", "canyon", "cedar", "cliff",
	"cloud", "copper", "coral", "crane", "delta", "dune", "eagle", "ember",
	"falcon", "fern", "field", "flint", "forest", "garnet", "glacier", "granite",
	"harbor", "hazel", "heron", "island", "ivory", "jasper", "juniper", "lagoon",
	"lantern", "larch", "ledge", "lichen", "maple", "marble", "marsh", "meadow",
	"mica", "moraine", "moss", "nickel", "oak", "opal", "orchid", "otter",
	"pebble", "pine", "quartz", "raven", "reef", "ridge", "river", "saddle",
	"shale", "silt", "slate", "spruce", "thistle", "tundra", "varve", "willow",
}

const digits64 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"

// content returns a payload of exactly size bytes.
func content(form Form, size, seed uint64) []byte {
	buf := make([]byte, size)
	if form == Document {
		document(buf, &rng{seed})
	} else {
		splitmix.Fill(buf, seed)
	}
	return buf
}

// document fills buf with a JSON object: words and base-64 numbers alternate,
// about four random bits a byte.
func document(buf []byte, r *rng) {
	const begin, end = `{"body":"`, `"}`
	at := copy(buf, begin)
	body := buf[:len(buf)-len(end)]
	copy(buf[len(body):], end)
	for at < len(body) {
		x := r.next()
		at += copy(body[at:], vocabulary[x&63])
		x >>= 6
		if at+11 > len(body) {
			for ; at < len(body); at++ {
				body[at] = ' '
			}
			return
		}
		field := body[at : at+11]
		field[0], field[10] = ' ', ' '
		for i := 1; i < 10; i++ {
			field[i] = digits64[x&63]
			x >>= 6
		}
		at += 11
	}
}
