package org.apache.iceberg.rest;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import org.junit.jupiter.api.extension.Extension;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs Iceberg's compatibility kit for REST catalogs at the server that system properties name (uri, ...). Prints a
 * line for each case: its result, its name and what went wrong. The classes below stand in for the kit's own server.
 */
public class Kit {
    public static void main(String[] arguments) {
        LauncherDiscoveryRequestBuilder request = LauncherDiscoveryRequestBuilder.request();
        request.selectors(selectClass(RESTCompatibilityKitCatalogTests.class));
        request.selectors(selectClass(RESTCompatibilityKitViewCatalogTests.class));
        LauncherFactory.create().execute(request.build(), new Lines());
        System.exit(0);
    }
}

class Lines implements TestExecutionListener {
    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        boolean isGood = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (test.isTest() || !isGood) {
            String name = test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast)
                    .map(MethodSource::getMethodName).orElse(test.getDisplayName());
            String text = result.getThrowable().map(String::valueOf).orElse("").replace('\n', ' ');
            System.out.println(result.getStatus() + " " + name + " " + text);
        }
    }
}

class RESTServerExtension implements Extension {}

class RESTCatalogServer {
    static final String REST_PORT = "rest.port";
    static final int REST_PORT_DEFAULT = 8181;
}

class RESTCompatibilityKitSuite {
    static final String RCK_REQUIRES_NAMESPACE_CREATE = "rck.requires-namespace-create";
    static final String RCK_SUPPORTS_SERVERSIDE_RETRY = "rck.supports-serverside-retry";
    static final String RCK_OVERRIDES_REQUESTED_LOCATION = "rck.overrides-requested-location";
    static final String RCK_SUPPORTS_NAMES_WITH_DOT = "rck.supports-names-with-dot";
}
