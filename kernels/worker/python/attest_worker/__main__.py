"""python -m attest_worker MODULE FUNCTION: started by attest, its socket and memory in place."""

import os
import sys

from attest_worker.loading import Kernel, LoadError, require_numpy
from attest_worker.protocol import Connection, Kind


def main():
    module_name, function_name = sys.argv[1:3]
    connection = Connection()
    try:
        require_numpy()
        kernel = Kernel(module_name, function_name)
    except LoadError as error:
        connection.send_text(Kind.LOAD_ERROR, 0, str(error), error.missing)
        os._exit(0)
    from attest_worker.serving import Server

    Server(connection, kernel).serve()


main()
