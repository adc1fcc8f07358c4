package libsql

/*
#cgo LDFLAGS: -Wl,--wrap=sqlite3_open_v2 -Wl,--wrap=sqlite3_close_v2

#include <pthread.h>
#include <stdlib.h>

// The library closes each of its connections twice (tursodatabase/libsql#2251).
// The second time it reads freed memory: then nothing happens, or the program
// crashes, or it closes a newer connection at the same address. So the linker
// redirects the calls to this file, which closes only open connections. One
// case remains: a connection that is opened at the same address between the two
// calls.

typedef struct handle {
	void *db;
	struct handle *next;
} handle;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static handle *handles;
static long again;

int __real_sqlite3_open_v2(const char *name, void **db, int flags, const char *vfs);
int __real_sqlite3_close_v2(void *db);

// take removes a handle from the list and returns it, or NULL if it is not
// there.
static handle *take(void *db) {
	pthread_mutex_lock(&mutex);
	handle **at = &handles;
	while (*at != NULL && (*at)->db != db)
		at = &(*at)->next;
	handle *h = *at;
	if (h != NULL)
		*at = h->next;
	else if (db != NULL)
		again++;
	pthread_mutex_unlock(&mutex);
	return h;
}

int __wrap_sqlite3_open_v2(const char *name, void **db, int flags, const char *vfs) {
	handle *h = malloc(sizeof *h);
	if (h == NULL) {
		*db = NULL;
		return 7; // SQLITE_NOMEM
	}
	int code = __real_sqlite3_open_v2(name, db, flags, vfs);
	if (*db == NULL) {
		free(h);
		return code;
	}
	h->db = *db;
	pthread_mutex_lock(&mutex);
	h->next = handles;
	handles = h;
	pthread_mutex_unlock(&mutex);
	return code;
}

int __wrap_sqlite3_close_v2(void *db) {
	handle *h = take(db);
	if (h == NULL)
		return 0;
	free(h);
	return __real_sqlite3_close_v2(db);
}

// counts returns how many connections are open, and how many repeated closes
// there were.
static void counts(long *open, long *closed_again) {
	pthread_mutex_lock(&mutex);
	*open = 0;
	for (handle *h = handles; h != NULL; h = h->next)
		++*open;
	*closed_again = again;
	pthread_mutex_unlock(&mutex);
}
*/
import "C"

// connections returns how many of the library's connections are open, and how
// many repeated closes there were.
func connections() (open, closedAgain int) {
	var o, a C.long
	C.counts(&o, &a)
	return int(o), int(a)
}
