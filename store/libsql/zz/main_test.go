package zz
import (
 "testing"
 "database/sql"
 "os"
 "fmt"
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

func nfd() int { es,_:=os.ReadDir("/proc/self/fd"); return len(es) }
func threads() int { es,_:=os.ReadDir("/proc/self/task"); return len(es) }
func wait(dir string) { t2:=time.Now(); for len(fds(dir))>0 && time.Since(t2)<200*time.Millisecond { time.Sleep(20*time.Microsecond) } }
func TestLeak(t *testing.T){
 ctx := context.Background()
 for name, f := range map[string]func(c *sql.Conn) error {
  "nothing": func(c *sql.Conn) error { return nil },
  "drained": func(c *sql.Conn) error { return drain(c,"select * from t",-1) },
  "drained args": func(c *sql.Conn) error { return drain(c,"select * from t where a > ?",-1, 0) },
  "early0": func(c *sql.Conn) error { return drain(c,"select * from t",0) },
  "early1": func(c *sql.Conn) error { return drain(c,"select * from t",1) },
  "early1 args": func(c *sql.Conn) error { return drain(c,"select * from t where a > ?",1,0) },
  "early1 then rollback": func(c *sql.Conn) error { c.ExecContext(ctx,"begin"); drain(c,"select * from t",1); _,err:=c.ExecContext(ctx,"rollback"); return err },
  "early1 then commit write": func(c *sql.Conn) error { c.ExecContext(ctx,"begin immediate"); drain(c,"select * from t",1); c.ExecContext(ctx,"insert into t values(77)"); _,err:=c.ExecContext(ctx,"commit"); return err },
  "exec ok": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"insert into t values(9)"); return err},
  "exec unique": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"insert into t values(1)"); return err},
  "exec unique args": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"insert into t values(?)",1); return err},
  "exec syntax": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"bad bad"); return err},
  "exec bind err": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"insert into t values(?)","\xff"); return err},
  "query unique": func(c *sql.Conn) error { return drain(c,"insert into t values(1)",-1)},
  "query nope": func(c *sql.Conn) error { return drain(c,"select * from nope",-1)},
  "exec select": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"select * from t"); return err},
  "exec select args": func(c *sql.Conn) error { _,err:=c.ExecContext(ctx,"select * from t where a>?", 0); return err},
  "ckpt in tx": func(c *sql.Conn) error { c.ExecContext(ctx,"begin"); err:= drain(c,"pragma wal_checkpoint",-1); c.ExecContext(ctx,"rollback"); return err},
 } { for _, mode := range []string{"rwc","ro"} {
 dir := t.TempDir()
 dsn := "file:"+filepath.Join(dir,"a.db")
 mk := func(mode string) (*sql.DB, *sql.Conn) { db,err := sql.Open("libsql", dsn+"?mode="+mode); if err!=nil {t.Fatal(err)}; c,err := db.Conn(ctx); if err!=nil {t.Fatal(err)}; return db,c }
 db,c := mk("rwc")
 drain(c,"pragma journal_mode=wal",-1)
 c.ExecContext(ctx,"create table t(a primary key)"); for i:=range 10 {c.ExecContext(ctx,"insert into t values(?)",i)}
 c.Close(); db.Close(); wait(dir)
 if l:=fds(dir); len(l)>0 {t.Log("leak after create", l)}
 db,c = mk(mode)
 err := f(c)
 db2,w := mk("rwc")
 w.ExecContext(ctx,"insert into t values(777)")
 res := ""
 r:=w.QueryRowContext(ctx,"pragma wal_checkpoint(TRUNCATE)"); var a,b,cc int; r.Scan(&a,&b,&cc); res=fmt.Sprint(a,b,cc)
 w.Close(); db2.Close()
 c.Close(); db.Close(); wait(dir)
 t.Logf("%-28s %s ckpt-from-other=%s leak=%v err=%.250v", name, mode, res, fds(dir), err)
 }}
 t.Log(threads(), nfd())
 for range 50 { dir:=t.TempDir(); db,_ := sql.Open("libsql","file:"+filepath.Join(dir,"a.db")); c,_:=db.Conn(ctx); c.Close(); db.Close() }
 t.Log(threads(), nfd())
 time.Sleep(300*time.Millisecond)
 t.Log(threads(), nfd())
}
