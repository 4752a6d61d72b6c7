// SPDX-License-Identifier: MIT
// The libc functions that the preload library replaces. Each does our part and passes the rest on
// to the next library (umockdev's, then libc).
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

#include "face_kfd/face.h"

// fcntl.h declares these with nonnull arguments and as inline wrappers under _FORTIFY_SOURCE; this
// file is compiled without it.
#define SOFTAPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using apusched::softapu::DescriptorKind;
using apusched::softapu::Face;
using apusched::softapu::Target;

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define SOFTAPU_NEXT(type, name) static auto* const real = next<type>(name)

bool is_device(DescriptorKind kind) {
  return kind == DescriptorKind::kfd || kind == DescriptorKind::render_node;
}

// Notes a descriptor that the next library opened.
int opened(Target target, int fd) {
  if (fd >= 0 && target.kind != DescriptorKind::none && !is_device(target.kind))
    Face::instance().descriptors().add(fd, target);
  return fd;
}

FILE* opened(Target target, FILE* file) {
  if (file != nullptr) opened(target, fileno(file));
  return file;
}

// struct stat64 is laid out alike where off_t has 64 bits.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
void describe(int fd, struct stat* status) {
  Face::instance().describe(fd, *status);
}

// An errno of ours, passed on.
bool refused(int error) {
  if (error != 0) errno = error;
  return error != 0;
}

// sysfs has nothing to truncate.
int without_truncation(Target target, int flags) {
  return is_attribute(target.kind) ? flags & ~O_TRUNC : flags;
}

mode_t mode_from(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

using OpenFunction = int(const char*, int, ...);
using OpenAtFunction = int(int, const char*, int, ...);
using FopenFunction = FILE*(const char*, const char*);
using MmapFunction = void*(void*, std::size_t, int, int, int, off_t);

#define SOFTAPU_OPEN(name)                                                      \
  SOFTAPU_EXPORT int name(const char* path, int flags, ...) {                   \
    SOFTAPU_NEXT(OpenFunction, #name);                                          \
    va_list arguments;                                                          \
    va_start(arguments, flags);                                                 \
    const mode_t mode = mode_from(flags, arguments);                            \
    va_end(arguments);                                                          \
    const Target target = Face::instance().target_of(path);                     \
    if (is_device(target.kind)) return Face::instance().open(target);           \
    return opened(target, real(path, without_truncation(target, flags), mode)); \
  }
SOFTAPU_OPEN(open)
SOFTAPU_OPEN(open64)

#define SOFTAPU_OPENAT(name)                                                               \
  SOFTAPU_EXPORT int name(int directory, const char* path, int flags, ...) {               \
    SOFTAPU_NEXT(OpenAtFunction, #name);                                                   \
    va_list arguments;                                                                     \
    va_start(arguments, flags);                                                            \
    const mode_t mode = mode_from(flags, arguments);                                       \
    va_end(arguments);                                                                     \
    const Target target = Face::instance().target_of(path);                                \
    if (is_device(target.kind)) return Face::instance().open(target);                      \
    return opened(target, real(directory, path, without_truncation(target, flags), mode)); \
  }
SOFTAPU_OPENAT(openat)
SOFTAPU_OPENAT(openat64)

// What open() becomes under _FORTIFY_SOURCE.
#define SOFTAPU_OPEN_2(name)                                              \
  SOFTAPU_EXPORT int name(const char* path, int flags) {                  \
    SOFTAPU_NEXT(int(const char*, int), #name);                           \
    const Target target = Face::instance().target_of(path);               \
    if (is_device(target.kind)) return Face::instance().open(target);     \
    return opened(target, real(path, without_truncation(target, flags))); \
  }
SOFTAPU_OPEN_2(__open_2)
SOFTAPU_OPEN_2(__open64_2)

#define SOFTAPU_FOPEN(name)                                            \
  SOFTAPU_EXPORT FILE* name(const char* path, const char* mode) {      \
    SOFTAPU_NEXT(FopenFunction, #name);                                \
    return opened(Face::instance().target_of(path), real(path, mode)); \
  }
SOFTAPU_FOPEN(fopen)
SOFTAPU_FOPEN(fopen64)

SOFTAPU_EXPORT int close(int fd) {
  SOFTAPU_NEXT(int(int), "close");
  Face::instance().closing(fd);
  return real(fd);
}

SOFTAPU_EXPORT int fclose(FILE* file) {
  SOFTAPU_NEXT(int(FILE*), "fclose");
  Face::instance().closing(fileno(file));
  return real(file);
}

SOFTAPU_EXPORT int dup(int fd) noexcept {
  SOFTAPU_NEXT(int(int), "dup");
  const int copy = real(fd);
  Face::instance().duplicated(fd, copy);
  return copy;
}

SOFTAPU_EXPORT int dup2(int fd, int to) noexcept {
  SOFTAPU_NEXT(int(int, int), "dup2");
  const int copy = real(fd, to);
  Face::instance().duplicated(fd, copy);
  return copy;
}

SOFTAPU_EXPORT int dup3(int fd, int to, int flags) noexcept {
  SOFTAPU_NEXT(int(int, int, int), "dup3");
  const int copy = real(fd, to, flags);
  Face::instance().duplicated(fd, copy);
  return copy;
}

#define SOFTAPU_FCNTL(name)                                                                        \
  SOFTAPU_EXPORT int name(int fd, int command, ...) {                                              \
    SOFTAPU_NEXT(int(int, int, ...), #name);                                                       \
    va_list arguments;                                                                             \
    va_start(arguments, command);                                                                  \
    void* argument = va_arg(arguments, void*);                                                     \
    va_end(arguments);                                                                             \
    const int result = real(fd, command, argument);                                                \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) Face::instance().duplicated(fd, result); \
    return result;                                                                                 \
  }
SOFTAPU_FCNTL(fcntl)
SOFTAPU_FCNTL(fcntl64)

SOFTAPU_EXPORT int ioctl(int fd, unsigned long request, ...) noexcept {
  SOFTAPU_NEXT(int(int, unsigned long, ...), "ioctl");
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (is_device(Face::instance().descriptors().kind(fd)))
    return Face::instance().ioctl(fd, request, argument);
  return real(fd, request, argument);
}

// libdrm asks a descriptor for its device number before anything else.
#define SOFTAPU_FSTAT(name, type)                                          \
  SOFTAPU_EXPORT int name(int fd, struct type* status) noexcept {          \
    SOFTAPU_NEXT(int(int, struct type*), #name);                           \
    const int result = real(fd, status);                                   \
    if (result == 0) describe(fd, reinterpret_cast<struct stat*>(status)); \
    return result;                                                         \
  }
SOFTAPU_FSTAT(fstat, stat)
SOFTAPU_FSTAT(fstat64, stat64)

SOFTAPU_EXPORT ssize_t write(int fd, const void* data, std::size_t bytes) {
  SOFTAPU_NEXT(ssize_t(int, const void*, std::size_t), "write");
  if (refused(Face::instance().before_attribute(fd))) return -1;
  if (Face::instance().descriptors().kind(fd) == DescriptorKind::level_file) {
    // sysfs refuses what amdgpu does not know; a plain file would take it.
    if (refused(Face::instance().refuse_level(fd, data, bytes))) return -1;
    // A store is the whole value, wherever the descriptor stands.
    const long written = syscall(SYS_pwrite64, fd, data, bytes, 0);
    if (written > 0) syscall(SYS_ftruncate, fd, written);
    return written;
  }
  const DescriptorKind kind = Face::instance().descriptors().kind(fd);
  if (kind == DescriptorKind::sclk_table || kind == DescriptorKind::overdrive_table)
    return refused(Face::instance().refuse_clocks(fd, data, bytes)) ? -1
                                                                    : static_cast<ssize_t>(bytes);
  return real(fd, data, bytes);
}

SOFTAPU_EXPORT ssize_t read(int fd, void* data, std::size_t bytes) {
  SOFTAPU_NEXT(ssize_t(int, void*, std::size_t), "read");
  return refused(Face::instance().before_attribute(fd)) ? -1 : real(fd, data, bytes);
}

// What read() becomes under _FORTIFY_SOURCE.
SOFTAPU_EXPORT ssize_t __read_chk(int fd, void* data, std::size_t bytes, std::size_t) {
  return read(fd, data, bytes);
}

// sysfs knows no copying within the kernel: programs fall back on read().
SOFTAPU_EXPORT ssize_t copy_file_range(int from, off64_t* from_at, int to, off64_t* to_at,
                                       std::size_t bytes, unsigned flags) {
  SOFTAPU_NEXT(ssize_t(int, off64_t*, int, off64_t*, std::size_t, unsigned), "copy_file_range");
  if (Face::instance().descriptors().kind(from) != DescriptorKind::none) return refused(EINVAL), -1;
  return real(from, from_at, to, to_at, bytes, flags);
}

#define SOFTAPU_PREAD(name)                                                      \
  SOFTAPU_EXPORT ssize_t name(int fd, void* data, std::size_t bytes, off_t at) { \
    SOFTAPU_NEXT(ssize_t(int, void*, std::size_t, off_t), #name);                \
    const int error = at == 0 ? Face::instance().before_attribute(fd) : 0;       \
    return refused(error) ? -1 : real(fd, data, bytes, at);                      \
  }
SOFTAPU_PREAD(pread)
SOFTAPU_PREAD(pread64)

namespace {

void* map(MmapFunction* real, void* address, std::size_t bytes, int protection, int flags, int fd,
          off_t offset) {
  if (fd < 0 || !is_device(Face::instance().descriptors().kind(fd)))
    return real(address, bytes, protection, flags, fd, offset);
  const auto device = Face::instance().process();
  const int file = device == nullptr ? -1 : device->file_for(static_cast<std::uint64_t>(offset));
  if (file >= 0) {
    void* mapping = real(address, bytes, protection, flags, file, 0);
    if (mapping != MAP_FAILED) device->mapped(static_cast<std::uint64_t>(offset), mapping, bytes);
    return mapping;
  }
  // A buffer object. Always accessible: the device that copies to it is a thread of this process.
  const int memory = (flags & ~(MAP_SHARED | MAP_TYPE)) | MAP_PRIVATE | MAP_ANONYMOUS;
  return real(address, bytes, PROT_READ | PROT_WRITE, memory | MAP_NORESERVE, -1, 0);
}

}  // namespace

SOFTAPU_EXPORT void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd,
                          off_t offset) noexcept {
  SOFTAPU_NEXT(MmapFunction, "mmap");
  return map(real, address, bytes, protection, flags, fd, offset);
}

SOFTAPU_EXPORT void* mmap64(void* address, std::size_t bytes, int protection, int flags, int fd,
                            off_t offset) noexcept {
  SOFTAPU_NEXT(MmapFunction, "mmap64");
  return map(real, address, bytes, protection, flags, fd, offset);
}
