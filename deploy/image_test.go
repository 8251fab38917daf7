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
	"syscall"
	"testing"
	"time"

	"purser/store/storetest"
)

// imageUser is the user of the image, as the Dockerfile says.
const imageUser = 65532

// patience bounds what must not take for ever, however busy the machine is.
const patience = 3 * time.Minute

// The program of the file system that make image packs runs by itself, and in that root as
// the image's user, who cannot write to it. Where the user of the test may not enter another
// root, make leaves the second part out.
func TestTheImageServesAsAnUnprivilegedUser(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "rootfs")
	if out, err := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-C", "..", "rootfs", "ROOTFS="+root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	open(t, root)
	before := listing(t, root)
	if want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "usr/bin/purser", "usr/share/doc/purser/LICENSE", "usr/share/doc/purser/THIRD-PARTY-NOTICES.txt"}; !slices.Equal(before.files, want) {
		t.Errorf("the image has the files %v, not %v", before.files, want)
	}
	if notices, err := os.ReadFile(filepath.Join(root, "usr/share/doc/purser/THIRD-PARTY-NOTICES.txt")); err != nil || !strings.Contains(string(notices), "github.com/labstack/echo/v4 v") {
		t.Errorf("the image's notices, %d bytes: %v", len(notices), err)
	}
	settings := []string{
		"DATABASE_URL=" + overTCP(t, storetest.FreshURL(t)), "PURSER_SECRET_KEY=" + strings.Repeat("k", 32), "PURSER_DRAIN=0s",
	}
	for name, i := range map[string]image{"outside": {root: root}, "entered": {root: root, entered: true}} {
		t.Run(name, func(t *testing.T) {
			if said := i.version(t); !strings.Contains(said, "purser ") || strings.Contains(said, "commit unknown") {
				t.Errorf("the image's version is %q", said)
			}
			i.serves(t, settings)
			if after := listing(t, root); !slices.Equal(after.files, before.files) {
				t.Errorf("the server wrote to its root: %v", after.files)
			}
		})
	}
}

// Compose finds the image only in the storage of the program that it runs with.
func TestTheBuilderOfTheImageCanBeChosen(t *testing.T) {
	t.Parallel()
	programs := t.TempDir()
	for _, name := range []string{"podman", "buildah", "docker"} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for builder, want := range map[string]string{"": "podman build --format docker --file", "BUILDER=buildah": "buildah build --format docker --file", "BUILDER=docker": "docker build --file", "BUILDER=sudo docker": "sudo docker build --file"} {
		dry := exec.CommandContext(t.Context(), "make", "-C", "..", "--dry-run", "image")
		if builder != "" {
			dry.Args = append(dry.Args, builder)
		}
		chosen := func(setting string) bool {
			name, _, _ := strings.Cut(setting, "=")
			return slices.Contains([]string{"BUILDER", "MAKEFLAGS", "MFLAGS"}, name)
		}
		dry.Env = append(slices.DeleteFunc(os.Environ(), chosen), "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := dry.CombinedOutput(); err != nil || !strings.Contains(string(out), "\n"+want+" deploy/Dockerfile") {
			t.Errorf("%s: %v\n%s", builder, err, out)
		}
	}
}

// image is a root file system, and whether its program runs inside of it.
type image struct {
	root    string
	entered bool
}

func (i image) version(t *testing.T) string {
	t.Helper()
	out, err := i.command(t, nil, "version").CombinedOutput()
	if err != nil {
		t.Fatalf("purser version: %v\n%s", err, out)
	}
	return string(out)
}

// serves runs the server until its health check succeeds, and stops it.
func (i image) serves(t *testing.T, settings []string) {
	t.Helper()
	environ, server, log, ended := i.start(t, settings)
	if err := server.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v\n%s", err, log.String())
	}
	if _, err := i.command(t, environ, "health").Output(); err == nil {
		t.Error("a stopped server is healthy")
	}
}

// start returns when the server is healthy. Another process may take its port first: then
// it gets another one.
func (i image) start(t *testing.T, settings []string) (environ []string, process *os.Process, log *bytes.Buffer, ended chan error) {
	t.Helper()
	for range 10 {
		environ = append(slices.Clone(settings), "PURSER_ADDR="+freeAddress(t))
		server := i.command(t, environ, "serve")
		log, ended = new(bytes.Buffer), make(chan error, 1)
		server.Stderr = log
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- server.Wait() }()
		if i.awaitHealth(t, environ, ended) {
			return environ, server.Process, log, ended
		}
		if !strings.Contains(log.String(), "already in use") {
			t.Fatalf("the server ended, %s:\n%s", server.ProcessState, log)
		}
	}
	t.Fatalf("the server finds no free port:\n%s", log)
	return nil, nil, nil, nil
}

// awaitHealth is false when the server ended.
func (i image) awaitHealth(t *testing.T, environ []string, ended <-chan error) bool {
	t.Helper()
	deadline := time.After(patience)
	for {
		said, err := i.command(t, environ, "health").Output()
		if err == nil && string(said) == "ready\n" {
			return true
		}
		select {
		case <-ended:
			return false
		case <-deadline:
			t.Fatal("the health check of the image never succeeded")
		case <-time.After(50 * time.Millisecond):
		}
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

// command runs the image's program as the user of the test, or in the image's root as its
// user: without root's rights in a namespace where the user of the test is that user.
func (i image) command(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	const program = "/usr/bin/purser"
	cmd := exec.CommandContext(t.Context(), filepath.Join(i.root, program), args...)
	cmd.Dir, cmd.Env = i.root, environ
	if i.entered {
		cmd.Path, cmd.Dir, cmd.SysProcAttr = program, "/", inRoot(i.root)
	}
	storetest.EndWithTests(cmd)
	return cmd
}

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
