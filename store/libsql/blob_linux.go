package libsql

/*
#cgo LDFLAGS: -Wl,--wrap=libsql_get_blob

// For an empty blob the library's native part returns 1, which is not a valid
// address. Its Go part stores it in a pointer variable, and the Go runtime
// crashes when it moves a stack with such a pointer. So the linker redirects
// the calls to these functions, which return a valid address for an empty blob.
// Freeing it, as the library does, has no effect.

typedef struct {
	const char *ptr;
	int len;
} blob;

int __real_libsql_get_blob(void *row, int column, blob *out, const char **message);

int __wrap_libsql_get_blob(void *row, int column, blob *out, const char **message) {
	static const char none;
	int status = __real_libsql_get_blob(row, column, out, message);
	if (status == 0 && out->len == 0)
		out->ptr = &none;
	return status;
}
*/
import "C"
