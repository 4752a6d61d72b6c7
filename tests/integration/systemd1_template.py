# SPDX-License-Identifier: MIT
"""dbusmock template: the part of org.freedesktop.systemd1 that apuschedd uses.

Every process belongs to one service, whose weights can be set; like systemd, a runtime
SetUnitProperties leaves a drop-in in the control directory. Where a file "cpu-group" in there names
a cgroup v1 directory, CPUWeight is put in force in it as systemd would."""

import os

import dbus

BUS_NAME = "org.freedesktop.systemd1"
MAIN_OBJ = "/org/freedesktop/systemd1"
MAIN_IFACE = "org.freedesktop.systemd1.Manager"
SYSTEM_BUS = True

UNIT = "llama.service"
UNIT_PATH = MAIN_OBJ + "/unit/llama_2eservice"
UNIT_IFACE = "org.freedesktop.systemd1.Service"
NOT_SET = 2**64 - 1


def load(mock, parameters):
    mock.control_dir = parameters["control_dir"]
    mock.AddObject(
        UNIT_PATH,
        UNIT_IFACE,
        {"CPUWeight": dbus.UInt64(NOT_SET), "IOWeight": dbus.UInt64(NOT_SET)},
        [],
    )


@dbus.service.method(MAIN_IFACE, in_signature="u", out_signature="o")
def GetUnitByPID(self, pid):
    if not os.path.exists(f"/proc/{pid}"):
        raise dbus.exceptions.DBusException(
            f"PID {pid} does not belong to any loaded unit.",
            name="org.freedesktop.systemd1.NoUnitForPID",
        )
    return dbus.ObjectPath(UNIT_PATH)


@dbus.service.method(MAIN_IFACE, in_signature="sba(sv)", out_signature="")
def SetUnitProperties(self, name, runtime, properties):
    if name != UNIT:
        raise dbus.exceptions.DBusException(
            f"Unit {name} not loaded.", name="org.freedesktop.systemd1.NoSuchUnit"
        )
    from dbusmock import get_object

    unit = get_object(UNIT_PATH)
    for key, value in properties:
        unit.Set(UNIT_IFACE, key, dbus.UInt64(value))
        if runtime:
            folder = os.path.join(self.control_dir, name + ".d")
            os.makedirs(folder, exist_ok=True)
            text = "" if int(value) == NOT_SET else str(int(value))
            with open(os.path.join(folder, f"50-{key}.conf"), "w", encoding="ascii") as file:
                file.write(f"[Service]\n{key}={text}\n")
        if key == "CPUWeight":
            put_in_force(self.control_dir, int(value))


def put_in_force(control_dir, weight):
    try:
        with open(os.path.join(control_dir, "cpu-group"), encoding="utf-8") as file:
            group = file.read().strip()
    except FileNotFoundError:
        return
    shares = 1024 if weight == NOT_SET else max(2, weight * 1024 // 100)
    with open(os.path.join(group, "cpu.shares"), "w", encoding="ascii") as file:
        file.write(str(shares))
