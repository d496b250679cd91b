"""
Loads a seccomp profile the way a container runtime does, and tries syscalls under it, each in a child process of its own.

Standard input: {"profile": {...}, "try": [names]}. Standard output: {"unknown": [names], "architectures": [names], "outcomes": {name: outcome}};
an outcome is `passes`, the name of an error, or that of a signal. Exits with 77 and a reason where it cannot be done here.
"""
import ctypes
import ctypes.util
import errno
import json
import os
import signal
import sys

SKIP = 77
UNKNOWN_SYSCALL = -1
ACTIONS = {
    "SCMP_ACT_KILL": 0x00000000,
    "SCMP_ACT_KILL_PROCESS": 0x80000000,
    "SCMP_ACT_ERRNO": 0x00050000 | errno.EPERM,
    "SCMP_ACT_LOG": 0x7FFC0000,
    "SCMP_ACT_ALLOW": 0x7FFF0000,
}


def skip(reason):
    print(reason, file=sys.stderr)
    sys.exit(SKIP)


def library():
    name = ctypes.util.find_library("seccomp") or "libseccomp.so.2"
    try:
        seccomp = ctypes.CDLL(name)
    except OSError:
        skip("libseccomp.so.2 is not installed")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    seccomp.seccomp_init.argtypes = [ctypes.c_uint32]
    seccomp.seccomp_arch_resolve_name.restype = ctypes.c_uint32
    seccomp.seccomp_arch_resolve_name.argtypes = [ctypes.c_char_p]
    seccomp.seccomp_arch_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    seccomp.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    seccomp.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    seccomp.seccomp_load.argtypes = [ctypes.c_void_p]
    return seccomp


def check(result, what, *fine):
    if result != 0 and -result not in fine:
        raise SystemExit(f"{what}: {errno.errorcode.get(-result, result)}")


def built(seccomp, profile):
    """The filter of a profile, its architectures, and the names that the library does not know."""
    context = seccomp.seccomp_init(ACTIONS[profile["defaultAction"]])
    if not context:
        raise SystemExit("seccomp_init")
    architectures = profile.get("architectures", [])
    for one in architectures:
        token = seccomp.seccomp_arch_resolve_name(one.removeprefix("SCMP_ARCH_").lower().encode())
        if token == 0:
            raise SystemExit(f"unknown architecture {one}")
        check(seccomp.seccomp_arch_add(context, token), one, errno.EEXIST)
    unknown = []
    for rule in profile["syscalls"]:
        for name in rule["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            if number == UNKNOWN_SYSCALL:
                unknown.append(name)
            else:
                check(seccomp.seccomp_rule_add(context, ACTIONS[rule["action"]], number, 0), name)
    return context, architectures, unknown


def outcome(seccomp, context, number):
    """The outcome of a syscall without arguments in a child that has loaded the filter."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    child = os.fork()
    if child == 0:
        # From here on only the syscall and the exit, since the filter could stop any other call.
        if seccomp.seccomp_load(context) != 0:
            os._exit(255)
        os._exit(0 if call(number) >= 0 else ctypes.get_errno())
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    code = os.WEXITSTATUS(status)
    if code == 255:
        skip("the kernel takes no seccomp filter here")
    return "passes" if code == 0 else errno.errorcode.get(code, str(code))


def main():
    if not sys.platform.startswith("linux"):
        skip("seccomp is of Linux")
    seccomp = library()
    asked = json.load(sys.stdin)
    context, architectures, unknown = built(seccomp, asked["profile"])
    numbers = {name: seccomp.seccomp_syscall_resolve_name(name.encode()) for name in asked["try"]}
    outcomes = {name: outcome(seccomp, context, number) for name, number in numbers.items()}
    json.dump({"unknown": unknown, "architectures": architectures, "outcomes": outcomes}, sys.stdout)


main()
