package zz
import (
 "testing"
 "database/sql"
 "os"
 "context"
 "time"
 "strings"
 "path/filepath"
 _ "github.com/tursodatabase/go-libsql"
)
func fds(dir string) []string { var l []string; es,_:=os.ReadDir("/proc/self/fd"); for _,e:=range es { t,_:=os.Readlink("/proc/self/fd/"+e.Name()); if strings.HasPrefix(t,dir) {l=append(l,strings.TrimPrefix(t,dir))}}; return l }
func drain(c *sql.Conn, q string, n int, args ...any) error {
 r,err := c.QueryContext(context.Background(), q, args...); if err!=nil {return err}
 for i:=0; n<0||i<n; i++ { if !r.Next() {break} }
 if err := r.Err(); err!=nil { r.Close(); return err }
 return r.Close()
}
func TestAsync(t *testing.T){
 ctx := context.Background()
 for i := range 6 {
 for _, pause := range []time.Duration{0, 50*time.Millisecond} {
 dir := t.TempDir()
 dsn := "file:"+filepath.Join(dir,"a.db")
 mk := func(mode string) (*sql.DB, *sql.Conn) { db,err := sql.Open("libsql", dsn+"?mode="+mode); if err!=nil {t.Fatal(err)}; c,err := db.Conn(ctx); if err!=nil {t.Fatal(err)}; return db,c }
 must:=func(_ any, err error) { if err!=nil {t.Log("SETUP",err)} }
 db,c := mk("rwc")
 if err:=drain(c,"pragma journal_mode=wal",-1); err!=nil {t.Log("SETUP",err)}
 must(c.ExecContext(ctx,"create table t(a primary key)"))
 for i:=range 10 {must(c.ExecContext(ctx,"insert into t values(?)",i))}
 t0 := time.Now()
 must(0,c.Close()); t1:=time.Now(); must(0,db.Close())
 t2:=time.Now()
 before := fds(dir)
 for len(fds(dir))>0 && time.Since(t2)<3*time.Second { time.Sleep(20*time.Microsecond) }
 closed := time.Since(t2)
 time.Sleep(pause)
 if i%2==1 {
  // reopen quickly
 }
 t.Log(pause, "close", t1.Sub(t0), t2.Sub(t1), "fds after", before, "gone after", closed)
 db,c = mk("rwc")
 err := drain(c,"select * from t",-1)
 t.Log(err, drain(c,"select * from t",-1))
 c.Close(); db.Close()
 // reopen without waiting
 db,c = mk("rwc")
 err = drain(c,"select * from t",-1)
 t.Log("nowait", err, drain(c,"select * from t",-1))
 time.Sleep(50*time.Millisecond)
 t.Log("nowait later", drain(c,"select * from t",-1))
 c.Close(); db.Close()
 time.Sleep(50*time.Millisecond)
 t.Log(fds(dir))
 }}
}
