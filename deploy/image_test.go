package deploy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"purser/store/storetest"
)

// imageUser is the user of the image, as the Dockerfile says.
const imageUser = 65532

// patience bounds what must not take for ever, however busy the machine is.
const patience = 3 * time.Minute

// The file system that make image packs is entered as the image's user, who cannot write
// to it, and serves there.
func TestTheImageServesAsAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "rootfs")
	if out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "..", "rootfs", "ROOTFS="+root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	open(t, root)
	before := listing(t, root)
	if want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/bin/purser"}; !slices.Equal(before.files, want) {
		t.Errorf("the image has the files %v, not %v", before.files, want)
	}
	if !mayEnterRoots() {
		t.Log("this user may not enter another root: the image's program runs outside of it")
	}
	if said := inImage(t, root, nil, "version"); !strings.Contains(said, "purser ") || strings.Contains(said, "commit unknown") {
		t.Errorf("the image's version is %q", said)
	}

	address := freeAddress(t)
	environ := []string{
		"DATABASE_URL=" + overTCP(t, storetest.FreshURL(t)), "PURSER_SECRET_KEY=" + strings.Repeat("k", 32),
		"PURSER_ADDR=" + address, "PURSER_DRAIN=0s",
	}
	server := command(t, root, environ, "serve")
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	deadline := time.After(patience)
	for {
		said, err := command(t, root, environ, "health").Output()
		if err == nil && string(said) == "ready\n" {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, log.String())
		case <-deadline:
			t.Fatal("the health check of the image never succeeded")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, log.String())
	}
	if after := listing(t, root); !slices.Equal(after.files, before.files) {
		t.Errorf("the server wrote to its root: %v", after.files)
	}
	if _, err := command(t, root, environ, "health").Output(); err == nil {
		t.Error("a stopped server is healthy")
	}
}

// tree is what a root file system holds.
type tree struct{ files []string }

// listing fails for what the image's user could write.
func listing(t *testing.T, root string) (found tree) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o022 != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSymlink) != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if !entry.IsDir() {
			name, err := filepath.Rel(root, path)
			found.files = append(found.files, name)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// open lets the image's user pass through the folders above its root.
func open(t *testing.T, root string) {
	t.Helper()
	for folder := filepath.Dir(root); folder != "/" && folder != os.TempDir(); folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o711); err != nil {
			t.Fatal(err)
		}
	}
}

// command runs the image's binary in the image's root as its user. Without root's rights,
// it does so in a namespace where the user of the test is that user. Where that is not
// allowed, as inside of another root, the binary runs as the user of the test, outside.
func command(t *testing.T, root string, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	if !mayEnterRoots() {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/purser"), args...)
		cmd.Dir, cmd.Env = root, environ
		return cmd
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/purser", args...)
	cmd.Path, cmd.Err = "/usr/bin/purser", nil // in the root
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", environ, inRoot(root)
	return cmd
}

// mayEnterRoots reports whether this user may run a program in another root.
var mayEnterRoots = sync.OnceValue(func() bool {
	if os.Geteuid() == 0 {
		return true
	}
	probe := exec.Command("/bin/sh", "-c", ":")
	probe.SysProcAttr = inRoot("/")
	return probe.Run() == nil
})

func inRoot(root string) *syscall.SysProcAttr {
	if os.Geteuid() == 0 {
		return &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	}
	return &syscall.SysProcAttr{
		Chroot: root, Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getegid(), Size: 1}},
	}
}

func inImage(t *testing.T, root string, environ []string, args ...string) string {
	t.Helper()
	out, err := command(t, root, environ, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("purser %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// overTCP makes the tests' Postgres, which listens on a socket, reachable from a root
// without that socket.
func overTCP(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(ctx, client, socket)
		}
	}()
	return fmt.Sprintf("postgres://%s@%s%s?sslmode=disable", u.User.Username(), listener.Addr(), u.Path)
}

func forward(ctx context.Context, client net.Conn, socket string) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	}()
	_, _ = io.Copy(client, server)
}
