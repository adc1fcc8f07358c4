package libsql

/*
#cgo LDFLAGS: -Wl,--wrap=libsql_get_blob

// For an empty blob the library's native part answers with an address that is
// none (1), its Go part keeps that in a variable of a pointer type, and the Go
// runtime ends the program when it moves a stack with such a variable. So the
// linker sends the calls through here, where an empty blob gets an address.
// Freeing it, as the library's Go part does, frees nothing: no bytes, no memory.

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
