"""The launcher of Isaac Sim. It parses arguments, starts a helper and handles signals, as Isaac Lab 2.3 does."""

import os
import signal
import subprocess
import sys
import time


class SimulationApp:
    """The app, whose process ends with it."""

    def close(self):
        """End the process at once. Buffered output is lost, as with Kit."""
        os._exit(0)


class AppLauncher:
    """Starts the app."""

    def __init__(self, arguments):
        if sys.version_info[:2] != (3, 11):
            raise RuntimeError(f"Isaac Sim 5.1 needs Python 3.11, not {sys.version.split()[0]}")
        print(f"Simulation App Starting, headless {arguments.headless}", flush=True)
        # Kit starts programs of its own, such as one for telemetry, in sessions of their own.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGABRT):
            signal.signal(number, self._on_signal)
        self.app = SimulationApp()
        print("Simulation App Startup Complete", flush=True)

    @staticmethod
    def add_app_launcher_args(parser):
        parser.add_argument("--headless", action="store_true")
        parser.add_argument("--device", type=str, default="cuda:0")

    def _on_signal(self, number, frame):
        """Close the app and hang, as Kit may do if it is closed within a signal handler."""
        while True:
            time.sleep(1.0)
