"""Owns the by-path start of a reader child: makes our packages importable, then hands over. Reads no frame.

It stands alone in its folder, and is started with -I: no current directory, no PYTHONPATH and no user site-packages
can put a workspace's own `server` folder before ours.
"""

import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != os.path.dirname(os.path.abspath(__file__))]
if ROOT not in sys.path:
    sys.path.append(ROOT)

from server.children.reader_main import main  # noqa: E402

sys.exit(main())
